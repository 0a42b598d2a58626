// Eisel and Lemire's algorithm (Lemire, "Number parsing at a gigabyte per second", 2021, sections 5
// to 8): the mantissa times the first 128 bits of the power of ten gives the first 64 bits of the
// product, unless these are so close to a tie that later bits would decide.
#include "io/text/decimal.hpp"

namespace attn::io {

bool to_nearest(std::uint64_t mantissa, int exponent, double& value) {
    // Below 10^20 * 10^18, and no subnormal number.
    if (mantissa == 0 || exponent < min_power_of_ten || exponent > 18) return false;
    const int zeros = std::countl_zero(mantissa);
    const std::uint64_t normal = mantissa << zeros;
    const PowerOfTen& power = power_of_ten(exponent);
    const Uint128 product = Uint128{normal} * power.high;
    auto high = static_cast<std::uint64_t>(product >> 64);
    auto low = static_cast<std::uint64_t>(product);
    if ((high & 0x1ff) == 0x1ff) {  // a carry from below could change the 55 bits that are used
        const auto more = static_cast<std::uint64_t>(Uint128{normal} * power.low >> 64);
        low += more;
        if (low < more) ++high;
        if (low == ~std::uint64_t{0}) return false;
    }
    const int top = static_cast<int>(high >> 63), shift = top + 9;
    std::uint64_t bits = high >> shift;  // 54: one more than float64 has
    // Only these powers are so short that the product can be a tie, which goes to even.
    const bool tie =
        low <= 1 && exponent >= -4 && exponent <= 23 && (bits & 3) == 1 && bits << shift == high;
    if (tie) --bits;
    bits = (bits + (bits & 1)) >> 1;
    int binary = log2_of_power_of_ten(exponent) + 63 - zeros + top;
    if (bits == std::uint64_t{1} << 53) {
        bits >>= 1;
        ++binary;
    }
    constexpr std::uint64_t hidden_bit = std::uint64_t{1} << 52;
    value = std::bit_cast<double>((bits & ~hidden_bit) | static_cast<std::uint64_t>(binary + 1023)
                                                             << 52);
    return true;
}

}  // namespace attn::io
