// Powers of ten to 128 bits, for conversions between decimal and binary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace attn::io {

__extension__ using Uint128 = unsigned __int128;

/// The first 128 bits of 10^exponent, of which the first is 1, rounded up if the exponent is
/// negative, otherwise down.
struct PowerOfTen {
    std::uint64_t high, low;
};

inline constexpr int min_power_of_ten = -64, max_power_of_ten = 48;

/// floor(log2(10^exponent)), for the exponents of the table and some beyond it.
constexpr int log2_of_power_of_ten(int exponent) {
    return (exponent * 217706) >> 16;
}

inline constexpr auto powers_of_ten = [] {
    // 5^i and 2^384 / 5^i, lowest word first: they have the bits of 10^i and 10^-i.
    using Large = std::array<std::uint64_t, 12>;
    const auto top = [](const Large& words) {
        std::size_t last = words.size() * 32 - 1;
        const auto bit = [&](std::size_t i) { return words[i / 32] >> (i % 32) & 1; };
        while (bit(last) == 0) --last;
        PowerOfTen power{0, 0};
        for (std::size_t i = 0; i < 128; ++i) {
            std::uint64_t& half = i < 64 ? power.high : power.low;
            half = half << 1 | (i <= last ? bit(last - i) : 0);
        }
        return power;
    };
    std::array<PowerOfTen, max_power_of_ten - min_power_of_ten + 1> powers{};
    Large large{1};
    for (int exponent = 0; exponent <= max_power_of_ten; ++exponent) {
        powers[static_cast<std::size_t>(exponent - min_power_of_ten)] = top(large);
        std::uint64_t carry = 0;
        for (std::uint64_t& word : large) {
            carry += 5 * word;
            word = carry & 0xffffffff;
            carry >>= 32;
        }
    }
    large = {};
    large.back() = std::uint64_t{1} << 31;
    for (int exponent = -1; exponent >= min_power_of_ten; --exponent) {
        std::uint64_t rest = 0;
        for (std::size_t i = large.size(); i-- > 0;) {
            rest = rest << 32 | large[i];
            large[i] = rest / 5;
            rest %= 5;
        }
        PowerOfTen power = top(large);
        if (++power.low == 0) ++power.high;
        powers[static_cast<std::size_t>(exponent - min_power_of_ten)] = power;
    }
    return powers;
}();

constexpr const PowerOfTen& power_of_ten(int exponent) {
    return powers_of_ten[static_cast<std::size_t>(exponent - min_power_of_ten)];
}

}  // namespace attn::io
