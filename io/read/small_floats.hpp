// Floating-point numbers of 8 and 16 bits as float32. Every conversion is exact.
#pragma once

#include <bit>
#include <cstdint>

namespace attn::io {

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

}  // namespace attn::io
