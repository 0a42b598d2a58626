// How large the errors of a right program in bfloat16 or float16 are expected to be. Their bounds
// hold for the worst case, and hold many wrong programs, too.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/dtype.hpp"

namespace attn {

/// Half a unit in the last place of a number in the type; 0 of one that is 0 or not finite.
inline double half_unit(const PrecisionRow& type, double x) {
    if (x == 0 || !std::isfinite(x)) return 0;
    constexpr std::uint64_t exponent_bits = 0x7ff0000000000000U;
    const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & exponent_bits);
    return std::max(type.unit * power, type.least / 2);
}

/// What a variance has: later ones have what earlier ones have, and cost more.
enum class NoiseDetail {
    storing,  ///< the rounding of outputs and of their normaliser
    steps,    ///< and of each step before
    all       ///< and what a query's rounding does to all of its keys
};

/// The errors that are expected in one row.
struct Noise {
    std::vector<double> half;      ///< half a unit in the last place of each number
    std::vector<double> variance;  ///< of each number's error
    double floor = 0;              ///< of sums in float32

    void clear() {
        half.clear();
        variance.clear();
        floor = 0;
    }
};

}  // namespace attn
