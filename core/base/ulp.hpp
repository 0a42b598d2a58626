// Distances in units in the last place.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/precision.hpp"

namespace attn {

/// How many numbers of the type lie from 0 to x, rounded to the type; negative below 0.
inline std::int64_t place_among_numbers(double x, const PrecisionRow& type) {
    const double magnitude = std::abs(type.round(x));
    const double normal = type.least / (2 * type.unit);  // the smallest normal number
    const auto of_binade = static_cast<std::int64_t>(1 / (2 * type.unit));
    std::int64_t place = 0;
    if (magnitude < normal) {
        place = static_cast<std::int64_t>(magnitude / type.least);
    } else {
        const int exponent = std::ilogb(magnitude);
        const double fraction = std::ldexp(magnitude, -exponent) - 1;
        place = (exponent - std::ilogb(normal) + 1) * of_binade +
                static_cast<std::int64_t>(fraction * static_cast<double>(of_binade));
    }
    return std::signbit(x) ? -place : place;
}

/// The distance of a and b in units in the last place, after both are rounded to the type; +0 and
/// -0 are one number. If one becomes an infinity or is NaN: 0 if a == b, else the largest integer.
inline std::uint64_t ulps_between(double a, double b, Precision precision) {
    const PrecisionRow& type = row_of(precision);
    if (!std::isfinite(type.round(a)) || !std::isfinite(type.round(b)))
        return a == b ? 0 : std::numeric_limits<std::uint64_t>::max();
    const std::int64_t first = place_among_numbers(a, type), second = place_among_numbers(b, type);
    // Unsigned, since the distance between the two largest numbers does not fit int64.
    return first < second ? static_cast<std::uint64_t>(second) - static_cast<std::uint64_t>(first)
                          : static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(second);
}

}  // namespace attn
