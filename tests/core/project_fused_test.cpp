// Projections by every kernel against plain loops in float64.
#include "core/base/torch_random.hpp"
#include "core/fused/attend_fused.hpp"
#include "core/kernels/dispatch.hpp"
#include "tests/support/support.hpp"

namespace project_fused_test {
namespace {

using namespace attn;

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

}  // namespace
}  // namespace project_fused_test
