#include "core/check/rotation.hpp"

#include <cmath>
#include <cstdlib>
#include <numbers>

namespace attn::check_detail {
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

void Shared::add_rotation(Key& key, const RopeConvention& rope, std::int64_t first, int times) {
    key.push_back(rope.pairs ? times : 0);
    if (!rope.pairs || times == 0) return;
    key.insert(key.end(),
               {static_cast<double>(*rope.pairs), rope.base, static_cast<double>(rope.dims),
                static_cast<double>(rope.frequency_dims), static_cast<double>(first)});
    key.insert(key.end(), rope.scaling.begin(), rope.scaling.end());
    key.push_back(-1);  // scaling is positive: its end
}

std::shared_ptr<const Rotation> Shared::rotation(const RopeConvention& rope, std::int64_t first,
                                                 std::size_t positions, int times) {
    Key key{static_cast<double>(positions)};
    add_rotation(key, rope, first, times);
    return rotations_.of(key, [&] {
        Rotation made;
        made.pairs = (rope.dims + 1) / 2;
        for (std::size_t row = 0; row < positions; ++row)
            for (std::size_t i = 0; i < made.pairs; ++i) {
                const double frequency = frequency_of(rope, i);
                const double angle =
                    static_cast<double>(first + static_cast<std::int64_t>(row)) * frequency;
                made.cosine.push_back(std::cos(angle * times));
                made.sine.push_back(std::sin(angle * times));
                // The frequency is a power, whose exponent is rounded, and its reciprocal; then the
                // product is rounded.
                const double of_angle = std::abs(angle * times) * model_.fine_unit() *
                                        (4 + std::abs(std::log(frequency)));
                made.error.push_back(std::min(of_angle, 2.0) + 4 * model_.unit() * std::abs(times));
            }
        return made;
    });
}

void rotate_row(const ErrorModel& model, const Rotation& rotation, Rope pairs, std::size_t position,
                double* value, double* error) {
    const std::size_t count = rotation.pairs;
    const double* const cosine = rotation.cosine.data() + position * count;
    const double* const sine = rotation.sine.data() + position * count;
    const double* const slack = rotation.error.data() + position * count;
    const std::size_t step = pairs == Rope::half ? 1 : 2, apart = pairs == Rope::half ? count : 1;
    for (std::size_t i = 0; i < count; ++i) {
        double& first = value[i * step];
        double& second = value[i * step + apart];
        const double a = first, b = second;
        first = cosine[i] * a - sine[i] * b;
        second = sine[i] * a + cosine[i] * b;
        if (error == nullptr) continue;
        double& of_first = error[i * step];
        double& of_second = error[i * step + apart];
        const double ea = of_first, eb = of_second, c = std::abs(cosine[i]), s = std::abs(sine[i]);
        const double more = slack[i] * (std::abs(a) + std::abs(b));
        of_first = c * ea + s * eb + more + model.rounding(first);
        of_second = s * ea + c * eb + more + model.rounding(second);
    }
}

}  // namespace attn::check_detail
