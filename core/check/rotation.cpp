// Rotary embedding of rows.
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "core/check/tensors.hpp"

namespace attn {
namespace {

/// Of pair i, see rope_frequencies in core/operator/rope.hpp.
double frequency_of(const RopeConvention& rope, std::size_t pair) {
    const std::size_t dims = rope.frequency_dims == 0 ? rope.dims : rope.frequency_dims;
    const double plain =
        std::pow(rope.base, -2.0 * static_cast<double>(pair) / static_cast<double>(dims));
    if (rope.scaling.empty()) return plain;
    const double slow = plain / rope.scaling[0];
    if (rope.scaling.size() == 1) return slow;
    const double low = rope.scaling[1], high = rope.scaling[2];
    const double turns = rope.scaling[3] * plain / (2 * std::numbers::pi);
    if (turns < low) return slow;
    if (turns > high) return plain;
    const double fast_part = (turns - low) / (high - low);
    return (1 - fast_part) * slow + fast_part * plain;
}

}  // namespace

RowRotation::RowRotation(const ErrorModel& model, const RopeConvention& rope, std::int64_t first,
                         std::size_t positions, int times)
    : layout(*rope.pairs), pairs((rope.dims + 1) / 2) {
    for (std::size_t row = 0; row < positions; ++row)
        for (std::size_t i = 0; i < pairs; ++i) {
            const double frequency = frequency_of(rope, i);
            const double angle =
                static_cast<double>(first + static_cast<std::int64_t>(row)) * frequency;
            cosine.push_back(std::cos(angle * times));
            sine.push_back(std::sin(angle * times));
            // The frequency is a power, whose exponent is rounded, and its reciprocal; then the
            // product is rounded.
            const double of_angle =
                std::abs(angle * times) * model.fine_unit() * (4 + std::abs(std::log(frequency)));
            error.push_back(std::min(of_angle, 2.0) + 4 * model.unit() * std::abs(times));
        }
}

void RowRotation::rotate(const ErrorModel& model, std::size_t position, double* x,
                         double* x_error) const {
    const std::size_t step = layout == Rope::half ? 1 : 2, apart = layout == Rope::half ? pairs : 1;
    for (std::size_t i = 0; i < pairs; ++i) {
        const double cos = cosine[position * pairs + i], sin = sine[position * pairs + i];
        double &first = x[i * step], &second = x[i * step + apart];
        double &of_first = x_error[i * step], &of_second = x_error[i * step + apart];
        const double a = first, b = second, ea = of_first, eb = of_second, c = std::abs(cos),
                     s = std::abs(sin);
        first = cos * a - sin * b;
        second = sin * a + cos * b;
        const double more = error[position * pairs + i] * (std::abs(a) + std::abs(b));
        of_first = c * ea + s * eb + more + model.rounding(first);
        of_second = s * ea + c * eb + more + model.rounding(second);
    }
}

}  // namespace attn
