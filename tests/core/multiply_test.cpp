// Linear maps of models by every kernel: weights in memory and decoded ones, few rows and many,
// against plain sums in float64.
#include "core/base/torch_random.hpp"
#include "core/model/products.hpp"
#include "core/plan/backend.hpp"
#include "tests/support/support.hpp"

namespace multiply_test {
namespace {

using namespace attn;

/// Elements in memory, which `in_place` shows or hides.
template <class T>
class Elements final : public ParameterSource {
public:
    Elements(std::vector<T> elements, std::vector<std::size_t> shape, bool shown)
        : elements_(std::move(elements)), shape_(std::move(shape)), shown_(shown) {}

    const std::vector<std::size_t>& shape() const override { return shape_; }
    void read(std::size_t first, std::size_t count, float* out) const override {
        copy(first, count, out);
    }
    void read(std::size_t first, std::size_t count, double* out) const override {
        copy(first, count, out);
    }
    const T* in_place(T) const override { return shown_ ? elements_.data() : nullptr; }
    using ParameterSource::in_place;

private:
    template <class U>
    void copy(std::size_t first, std::size_t count, U* out) const {
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<U>(elements_.at(first + i));
    }

    std::vector<T> elements_;
    std::vector<std::size_t> shape_;
    bool shown_;
};

template <class T>
std::vector<T> numbers(std::size_t count, std::uint64_t seed) {
    TorchGenerator generator(seed);
    std::vector<T> made(count);
    for (T& number : made) number = generator.uniform<T>(-1, 1);
    return made;
}

/// Compares with the sums; returns the elements.
template <class T>
std::vector<T> check(const Backend& backend, ThreadPool& pool, std::size_t rows, std::size_t d_in,
                     std::size_t d_out, bool in_out, bool has_bias, bool shown) {
    CAPTURE(std::string(backend.name));
    CAPTURE(rows);
    CAPTURE(d_in);
    CAPTURE(d_out);
    CAPTURE(in_out);
    CAPTURE(shown);
    constexpr std::size_t before = 7;  // elements of the tensor before the map's
    const std::vector<T> w = numbers<T>(before + d_in * d_out, 1), b = numbers<T>(d_out, 2),
                         given = numbers<T>(rows * d_in, 3);
    LinearMap map;
    map.weight = std::make_shared<const Elements<T>>(
        w, std::vector<std::size_t>{before + d_in * d_out}, shown);
    if (has_bias)
        map.bias = std::make_shared<const Elements<T>>(b, std::vector<std::size_t>{d_out}, shown);
    map.d_in = d_in;
    map.d_out = d_out;
    map.in_out = in_out;
    map.first = before;
    States x(dtype_of<T>, 1, rows, d_in);
    std::copy(given.begin(), given.end(), x.data<T>());
    const Compute compute{pool, backend.name, &backend};
    const States out = apply(compute, map, x);
    REQUIRE(out.rows() == rows);
    REQUIRE(out.columns() == d_out);
    const double unit = sizeof(T) == sizeof(float) ? 0x1p-24 : 0x1p-53;
    bool agree = true;
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t c = 0; c < d_out; ++c) {
            double sum = has_bias ? static_cast<double>(b[c]) : 0, size = std::abs(sum);
            for (std::size_t i = 0; i < d_in; ++i) {
                const double term =
                    static_cast<double>(given[row * d_in + i]) *
                    static_cast<double>(w[before + (in_out ? i * d_out + c : c * d_in + i)]);
                sum += term;
                size += std::abs(term);
            }
            const double error = std::abs(out.at(row * d_out + c) - sum);
            agree = agree && error <= static_cast<double>(d_in + 2) * unit * size;
        }
    CHECK(agree);
    return {out.data<T>(), out.data<T>() + out.size()};
}

TEST_CASE_TEMPLATE("multiply: weights in place and decoded, on any number of threads", T, float,
                   double) {
    static test::Sample sample;
    ThreadPool one(1), three(3);
    for (const Backend& backend : backends()) {
        if (!backend.runs_here()) continue;
        for (const std::size_t rows : std::vector<std::size_t>{1, 2, 4, 5, 25, 400})
            for (const std::size_t d_in : std::vector<std::size_t>{1, 3, 33, 130})
                for (const std::size_t d_out : std::vector<std::size_t>{1, 17, 64, 65, 200})
                    for (bool in_out : {false, true})
                        for (bool bias : {false, true}) {
                            if (!sample.takes()) continue;
                            const std::vector<T> shown =
                                check<T>(backend, one, rows, d_in, d_out, in_out, bias, true);
                            CHECK(shown ==
                                  check<T>(backend, three, rows, d_in, d_out, in_out, bias, false));
                        }
    }
}

TEST_CASE("multiply: pieces larger than a cache") {
    ThreadPool pool(2);
    for (const Backend& backend : backends()) {
        if (!backend.is_fused() || !backend.runs_here()) continue;
        for (bool in_out : {false, true})
            for (const std::size_t rows : std::vector<std::size_t>{2, 30}) {
                const auto shown = check<float>(backend, pool, rows, 3001, 70, in_out, true, true);
                CHECK(shown == check<float>(backend, pool, rows, 3001, 70, in_out, true, false));
            }
    }
}

}  // namespace
}  // namespace multiply_test
