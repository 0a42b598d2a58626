// Floating-point numbers of 8 and 16 bits as float32. Every conversion is exact.
#pragma once

#include <bit>
#include <cstdint>

namespace attn::io {

/// IEEE 754 binary16. The bits become those of a float32 whose exponent is 112 too small, which an
/// exact product corrects, also for subnormals.
constexpr float float_of_half(std::uint16_t bits) {
    const std::uint32_t sign = (std::uint32_t{bits} & 0x8000u) << 16;
    const std::uint32_t rest = (std::uint32_t{bits} & 0x7fffu) << 13;
    const bool nonfinite = (bits & 0x7c00u) == 0x7c00u;
    const std::uint32_t magnitude =
        nonfinite ? rest | 0x7f800000u
                  : std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
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
    const std::uint32_t magnitude =
        (bits & 0x7fu) == 0x7fu
            ? 0x7fc00000u
            : std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p120f);
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

}  // namespace attn::io
