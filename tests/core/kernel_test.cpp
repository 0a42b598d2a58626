// Every fused kernel that this processor runs: against the reference in float64, with awkward
// sizes, every option, every magnitude, and what must be exact; and over the whole space of
// questions, generated from seeds, against the formula in long double: ATTN_TEST_CASES asks for
// more of them than the usual ones, ATTN_TEST_SEED for others. Projections and linear maps of
// models by every kernel, against plain loops in float64.
#include "core/base/torch_random.hpp"
#include "core/fused/attend_fused.hpp"
#include "core/fused/tile_plan.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/model/products.hpp"
#include "core/plan/backend.hpp"
#include "tests/support/fused_answer.hpp"
#include "tests/support/kernel_check.hpp"
#include "tests/support/random_call.hpp"
#include "tests/support/support.hpp"

namespace kernel_test {
namespace {

using namespace attn;
using test::Answer;
using test::fused;
using test::GeneratedQuestion;
using test::plain_call;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The largest distance of two arrays; infinity where one alone is NaN or they differ in sign of an
/// infinity.
template <class A, class B>
double distance(const A& a, const B& b) {
    REQUIRE(a.size() == b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = static_cast<double>(a.data()[i]), y = static_cast<double>(b.data()[i]);
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        const double apart = std::abs(x - y);
        worst = std::max(worst, std::isnan(apart) ? infinity : apart);
    }
    return worst;
}

/// An additive mask, which masks a part of the keys.
Array<double> random_mask(std::vector<std::size_t> shape, std::uint64_t seed, double masked) {
    Array<double> mask = Array<double>::from_shape(shape);
    TorchGenerator generator(seed);
    for (double& value : mask) {
        const bool is_masked = generator.uniform01<double>() < masked;
        const double bias = generator.uniform<double>(-3, 3);
        value = is_masked ? -infinity : static_cast<double>(static_cast<float>(bias));
    }
    return mask;
}

TEST_CASE("kernels: a stream so long that workers jump to their parts, as one worker draws it") {
    auto call = plain_call<float>({1, 8, 8, 1500, 1500, 4, 4}, 2, 3);
    call.mask.add(BandRule(-1, 0, 0));
    for (DropoutStream stream : {DropoutStream::mt19937, DropoutStream::mkl}) {
        call.dropout = {0.2, stream, false, 1500, TorchGenerator(7)};
        const kernels::Kernel& kernel = *kernels::supported().back();
        const Answer<float> one = fused(kernel, call, false, 1);
        for (std::size_t threads : {2u, 5u})
            CHECK(distance(one.context, fused(kernel, call, false, threads).context) == 0);
    }
}

TEST_CASE("kernels: tiles that are computed together give the bytes of separate tiles") {
    // More keys than the second cache holds; not every number of tiles is a multiple of four.
    test::Sample sample;
    const std::size_t q_lens[] = {64 * 16, 64 * 17 + 5, 64 * 19};
    for (std::size_t i = 0;
         const char* what : {"all", "causal", "window", "offset", "mask", "soft cap"})
        for (std::size_t kv_len : {2100u, 2304u}) {
            const std::size_t q_len = q_lens[i++ % 3];
            if (!sample.takes()) continue;
            const std::string kind = what;
            CAPTURE(q_len);
            CAPTURE(kv_len);
            CAPTURE(kind);
            auto call = plain_call<float>({1, 2, 1, q_len, kv_len, 64, 72}, 2, 5);
            if (kind == "causal") call.mask.add(BandRule(-1, 0, 0));
            if (kind == "window") call.mask.add(BandRule(700, 0, 0));
            if (kind == "offset") {
                call.offset = 500;
                call.mask.add(BandRule(-1, 0, 500));
            }
            if (kind == "mask") call.biases.emplace_back(random_mask({1, kv_len}, 1, 0.2), 0);
            if (kind == "soft cap") call.softcap = 3;
            for (const kernels::Kernel* kernel : test::kernels_for_large_calls()) {
                CAPTURE(std::string(kernel->name));
                const Answer<float> together = fused(*kernel, call, false, 1);
                const Answer<float> alone = fused(*kernel, call, true, 1);
                CHECK(distance(together.context, alone.context) == 0);
                CHECK(distance(together.logsumexp, alone.logsumexp) == 0);
            }
        }
}

TEST_CASE("kernels: the same bytes from every kernel with a fused multiply-add, on any processor") {
    auto call = plain_call<float>({2, 4, 2, 150, 400, 40, 24}, 3, 3);
    call.softcap = 20;
    call.alibi = true;
    call.sink = {0, 1, 2, 3};
    call.offset = 250;
    call.mask.add(BandRule(100, 0, 250));
    auto decoding = plain_call<float>({1, 2, 1, 2, 9000, 20, 9}, 3, 3);
    for (const kernels::Kernel* kernel : kernels::supported()) {
        if (std::string(kernel->name) == "generic") continue;
        CAPTURE(std::string(kernel->name));
        const Answer<float> got = fused(*kernel, call);
        // The hashes were computed with AVX-512.
        CHECK(test::hash_of_bytes(got.context) == 0x5ab1f3ae0e17d8d3);
        CHECK(test::hash_of_bytes(got.weights) == 0xf2c66ccaaf8b2f5);
        CHECK(test::hash_of_bytes(fused(*kernel, decoding, false).context) == 0x7c55af6711b92378);
        CHECK(test::hash_of_bytes(fused(*kernel, test::widened(call)).context) ==
              0xd417e90253eb7495);
    }
}

/// How many rows could be checked.
template <class T>
std::size_t check_question(std::uint64_t seed) {
    const GeneratedQuestion<T> question = test::generate_question<T>(seed);
    CAPTURE(question.words);
    const test::KernelCheck check = test::check_kernels(question);
    for (const std::string& wrong : check.wrong) CHECK(wrong == "");
    return check.usable;
}

TEST_CASE_TEMPLATE("kernels, generated: every magnitude of scores and values, with every option", T,
                   float, double) {
    const std::uint64_t first = test::number_from_environment("ATTN_TEST_SEED", 1);
    const std::uint64_t count = test::number_from_environment("ATTN_TEST_CASES", test::cases(300));
    std::size_t usable = 0;
    for (std::uint64_t seed = first; seed < first + count; ++seed)
        usable += check_question<T>(seed);
    // Most rows lie where plain arithmetic works, so most of the checks are real.
    CHECK(usable > count * 20);
    MESSAGE(count << " questions from seed " << first << ", " << usable << " rows");
}

TEST_CASE("strips: a window costs its own length, not that of all keys") {
    Mask mask;
    mask.add(BandRule(256, 0, 0));
    TilePlan plan;
    plan.make(mask, {0, 0, 1, 50000, 64, 0}, 0, {0, 100000}, 16, false, false);
    std::size_t keys = 0;
    for (const kernels::Strip& strip : plan.strips()) keys += strip.keys;
    CHECK(keys == 256 + 64);
}

template <class T>
struct Question {
    Tensor3<T> x;
    Projection<T> projection;

    Question(std::size_t batch, std::size_t rows, std::size_t d_in, std::size_t groups,
             std::size_t width, bool in_out, bool bias)
        : x(Tensor3<T>::from_shape({batch, rows, d_in})) {
        const auto fill = [](auto& tensor, std::uint64_t seed) {
            TorchGenerator generator(seed);
            for (T& value : tensor) value = generator.uniform<T>(-1, 1);
        };
        projection.in_out = in_out;
        projection.weight =
            Tensor3<T>::from_shape({groups, in_out ? d_in : width, in_out ? width : d_in});
        projection.bias = Tensor2<T>::from_shape({bias ? groups : 0, width});
        fill(x, 1);
        fill(projection.weight, 2);
        fill(projection.bias, 3);
    }

    double expected(std::size_t b, std::size_t row, std::size_t group, std::size_t column) const {
        double sum =
            projection.has_bias() ? static_cast<double>(projection.bias(group, column)) : 0;
        for (std::size_t i = 0; i < x.shape(2); ++i)
            sum += static_cast<double>(x(b, row, i)) *
                   static_cast<double>(projection.in_out ? projection.weight(group, i, column)
                                                         : projection.weight(group, column, i));
        return sum;
    }
};

template <class T>
void check(std::size_t batch, std::size_t rows, std::size_t d_in, std::size_t groups,
           std::size_t width, std::size_t heads_a_group) {
    CAPTURE(rows);
    CAPTURE(d_in);
    CAPTURE(width);
    CAPTURE(groups);
    const std::size_t heads = groups * heads_a_group, d = width / heads_a_group;
    static test::Sample sample;
    for (bool in_out : {false, true})
        for (bool bias : {false, true}) {
            if (!sample.takes()) continue;
            const Question<T> q(batch, rows, d_in, groups, width, in_out, bias);
            std::vector<double> expected;
            expected.reserve(batch * rows * groups * width);
            for (std::size_t b = 0; b < batch; ++b)
                for (std::size_t r = 0; r < rows; ++r)
                    for (std::size_t c = 0; c < groups * width; ++c)
                        expected.push_back(q.expected(b, r, c / width, c % width));
            for (const kernels::Kernel* kernel : kernels::supported())
                for (std::size_t threads : {1u, 3u}) {
                    ThreadPool workers(threads);
                    Tensor4<T> out = Tensor4<T>::from_shape({batch, heads, rows, d});
                    out.fill(T{99});
                    const ProjectionTo<T> to{
                        q.projection, heads, {out.data(), heads * rows * d, rows * d, d}};
                    project_fused(*kernel, q.x, std::span(&to, 1), workers);
                    const double unit = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
                    auto wanted = expected.begin();
                    for (std::size_t b = 0; b < batch; ++b)
                        for (std::size_t r = 0; r < rows; ++r)
                            for (std::size_t c = 0; c < groups * width; ++c) {
                                const double got = static_cast<double>(out(b, c / d, r, c % d));
                                const double want = *wanted++;
                                if (!(std::abs(got - want) <=
                                      unit * std::sqrt(static_cast<double>(d_in)) *
                                          (6 + std::abs(want))))
                                    FAIL_CHECK(kernel->name, " ", r, ",", c, ": ", got, " for ",
                                               want);
                            }
                }
        }
}

TEST_CASE("projection: every kernel gives x W^T + b, for awkward rows, widths, heads and groups") {
    for (std::size_t rows : {1u, 5u, 6u, 7u, 25u})
        for (std::size_t d_in : {1u, 3u, 16u, 65u}) {
            check<float>(1, rows, d_in, 1, 1, 1);
            check<float>(2, rows, d_in, 1, 70, 10);
            check<float>(1, rows, d_in, 3, 22, 1);
            check<double>(2, rows, d_in, 2, 130, 2);
        }
    check<float>(1, 400, 768, 1, 64, 1);
}

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
}  // namespace kernel_test
