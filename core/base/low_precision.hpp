// Numbers of few bits: floating-point types of 8 and 16 bits, 8-bit integers with a scale, and
// fixed point. Conversions to float32 are exact. Conversions from float64 round once, to nearest
// with ties to even as IEEE 754 does, unless they are said to round otherwise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attn {

/// One of two words, without a branch: compilers then convert several numbers at once.
constexpr std::uint32_t chosen(bool first, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t mask = 0u - std::uint32_t{first};
    return (a & mask) | (b & ~mask);
}

/// IEEE 754 binary16. The bits become those of a float32 whose exponent is 112 too small.
constexpr float float_of_half(std::uint16_t bits) {
    const std::uint32_t sign = (std::uint32_t{bits} & 0x8000u) << 16;
    const std::uint32_t rest = (std::uint32_t{bits} & 0x7fffu) << 13;
    const std::uint32_t nonfinite = rest >= 0x0f800000u ? 0x38000000u : 0u;
    // Processors multiply subnormal float32 numbers slowly, so these are differences of normal
    // ones.
    const float difference = std::bit_cast<float>(rest + 0x38800000u) - 0x1p-14f;
    const std::uint32_t magnitude =
        chosen(rest < 0x00800000u, std::bit_cast<std::uint32_t>(difference),
               rest + 0x38000000u + nonfinite);
    return std::bit_cast<float>(magnitude | sign);
}

/// The upper half of a float32.
constexpr float float_of_bfloat16(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// S EEEE MMM with bias 7, without infinities: 0x7f and 0xff are NaN.
constexpr float float_of_e4m3(std::uint8_t bits) {
    const std::uint32_t sign = (std::uint32_t{bits} & 0x80u) << 24;
    const std::uint32_t rest = (std::uint32_t{bits} & 0x7fu) << 20;
    const std::uint32_t nan = rest == 0x07f00000u ? 0x3bd00000u : 0u;
    const float difference = std::bit_cast<float>(rest + 0x3c800000u) - 0x1p-6f;
    const std::uint32_t magnitude = chosen(
        rest < 0x00800000u, std::bit_cast<std::uint32_t>(difference), rest + 0x3c000000u + nan);
    return std::bit_cast<float>(magnitude | sign);
}

/// The upper half of a binary16.
constexpr float float_of_e5m2(std::uint8_t bits) {
    return float_of_half(static_cast<std::uint16_t>(bits << 8));
}

/// A power of two, 2^(bits - 127); 0xff is NaN.
constexpr float float_of_e8m0(std::uint8_t bits) {
    return std::bit_cast<float>(bits == 0     ? 0x00400000u
                                : bits == 255 ? 0x7fc00000u
                                              : std::uint32_t{bits} << 23);
}

/// Rounds to a type of this many bits, of which so many are its fraction, and whose least normal
/// number is 2 to the `least`. Numbers that round beyond the largest become `infinity`, NaN `nan`,
/// with their signs.
template <class Bits, int fraction, int least, std::uint32_t infinity, std::uint32_t nan>
constexpr Bits small_of_double(double x) {
    constexpr int wide_fraction = std::numeric_limits<double>::digits - 1, bias = 1023;
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto sign = static_cast<std::uint32_t>(bits >> 63) << (8 * sizeof(Bits) - 1);
    const std::uint64_t rest = bits & 0x7fff'ffff'ffff'ffffu;
    if (rest > 0x7ff0'0000'0000'0000u) return static_cast<Bits>(sign | nan);
    const int exponent = static_cast<int>(rest >> wide_fraction) - bias;
    if (exponent > bias) return static_cast<Bits>(sign | infinity);
    // Below the normal numbers, more bits are cut off. All of them are if none could round up,
    // which includes the subnormal numbers of float64.
    const int above = exponent < least ? 0 : exponent - least;
    const int cut = wide_fraction - fraction + (exponent < least ? least - exponent : 0);
    if (cut > wide_fraction + 1) return static_cast<Bits>(sign);
    const std::uint64_t leading = std::uint64_t{1} << wide_fraction;
    const std::uint64_t significand = (rest & (leading - 1)) | leading;
    const std::uint64_t half = std::uint64_t{1} << (cut - 1), kept = significand >> cut;
    const std::uint64_t cut_off = significand & (2 * half - 1);
    const bool rounds_up = cut_off > half || (cut_off == half && kept % 2 == 1);
    // A carry out of the fraction adds 1 to the exponent.
    const std::uint64_t magnitude =
        (static_cast<std::uint64_t>(above) << fraction) + kept + (rounds_up ? 1 : 0);
    return static_cast<Bits>(
        sign | (magnitude < infinity ? static_cast<std::uint32_t>(magnitude) : infinity));
}

constexpr std::uint16_t half_of_double(double x) {
    return small_of_double<std::uint16_t, 10, -14, 0x7c00, 0x7e00>(x);
}
constexpr std::uint16_t bfloat16_of_double(double x) {
    return small_of_double<std::uint16_t, 7, -126, 0x7f80, 0x7fc0>(x);
}
/// NaN instead of an infinity, as in PyTorch.
constexpr std::uint8_t e4m3_of_double(double x) {
    return small_of_double<std::uint8_t, 3, -6, 0x7f, 0x7f>(x);
}
constexpr std::uint8_t e5m2_of_double(double x) {
    return small_of_double<std::uint8_t, 2, -14, 0x7c, 0x7f>(x);
}

/// What is stored in place of a number.
struct StoredWord {
    std::int64_t word;  ///< an integer, or the bits of a floating-point number
    bool saturated;     ///< beyond the type's range
};

/// A number without a fraction, possibly infinite, as two's complement of 1 to 64 bits.
inline StoredWord quantised(double whole, int bits) {
    const double limit = std::ldexp(1.0, bits - 1);
    const std::int64_t lowest = std::numeric_limits<std::int64_t>::min() >> (64 - bits);
    if (whole >= limit) return {-(lowest + 1), true};
    if (whole < -limit) return {lowest, true};
    return {static_cast<std::int64_t>(whole), false};
}

/// x / scale, rounded from the exact quotient to nearest, ties to even. x is not NaN; the scale is
/// from 1e-300 to 1e300.
inline double quotient_to_nearest(double x, double scale) {
    const double quotient = x / scale;
    const double whole = std::nearbyint(quotient);
    // The quotient may have been rounded to a tie. Otherwise it is on the side of the exact one.
    if (std::abs(quotient - whole) != 0.5) return whole;
    const double beyond = std::fma(-quotient, scale, x);  // its sign is exact
    return beyond == 0 ? whole : beyond > 0 ? std::ceil(quotient) : std::floor(quotient);
}

/// To nearest, ties to even (AP_RND_CONV of HLS); to nearest, ties towards plus infinity (AP_RND);
/// towards minus infinity (AP_TRN).
enum class FixedRounding { nearest, half_up, down };

/// x * 2^fraction, rounded. x is not NaN; fraction is from -1022 to 1022, where products round only
/// if they are far from any tie.
inline double fixed_whole(double x, int fraction, FixedRounding rounding) {
    const double scaled = x * std::ldexp(1.0, fraction);
    if (rounding == FixedRounding::nearest || std::isinf(scaled)) return std::nearbyint(scaled);
    const double below = scaled == 0 && x < 0 ? -1 : std::floor(scaled);  // it may underflow
    return rounding == FixedRounding::half_up && scaled - below >= 0.5 ? below + 1 : below;
}

/// The lowest `bits` bits of that, as two's complement. x is finite. All steps are exact: the range
/// is a multiple of the unit that the number is rounded to.
inline std::int64_t wrapped_fixed(double x, int bits, int fraction, FixedRounding rounding) {
    const double rest = std::fmod(x, std::ldexp(1.0, bits - fraction));
    const double limit = std::ldexp(1.0, bits - 1), whole = fixed_whole(rest, fraction, rounding);
    const double turn = whole >= limit ? -2 * limit : whole < -limit ? 2 * limit : 0;
    return static_cast<std::int64_t>(whole + turn);
}

}  // namespace attn
