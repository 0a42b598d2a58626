// Plain decimal numbers, eight digits at a time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace attn::io {

/// Eight bytes, the first one in the lowest bits on any machine.
inline std::uint64_t load_bytes(const char* at) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    if constexpr (std::endian::native == std::endian::big) {
        std::uint64_t turned = 0;
        for (int i = 0; i < 8; ++i) turned |= (word >> (8 * i) & 0xff) << (56 - 8 * i);
        return turned;
    }
    return word;
}

/// The digits at the start of eight bytes; the words of the two functions hold bytes less '0'.
class DigitRun {
public:
    explicit DigitRun(const char* at) : word_(load_bytes(at) ^ 0x3030303030303030u) {
        // A byte above 9, or with its high bit set, gets a high bit here; none carries over.
        const std::uint64_t others =
            (((word_ & 0x7f7f7f7f7f7f7f7fu) + 0x7676767676767676u) | word_) & 0x8080808080808080u;
        count_ = static_cast<unsigned>(std::countr_zero(others)) / 8;
    }

    unsigned count() const { return count_; }

    /// The number of these digits: shifted to the end after zeros, then added up in pairs, fours
    /// and eights.
    std::uint64_t value() const {
        const unsigned half = 32 - 4 * count_;  // twice, as a shift by 64 is none
        std::uint64_t w = word_ << half << half;
        w = w * 10 + (w >> 8);
        const std::uint64_t low = (w & 0x000000ff000000ffu) * 0x000f424000000064u;
        const std::uint64_t high = (w >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u;
        return (low + high) >> 32;
    }

private:
    std::uint64_t word_;
    unsigned count_;
};

inline constexpr std::array<std::uint64_t, 20> integer_powers_of_ten = [] {
    std::array<std::uint64_t, 20> powers{1};
    for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = 10 * powers[i - 1];
    return powers;
}();

/// Those that are exact in float64.
inline constexpr std::array<double, 23> exact_powers_of_ten{
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// The float64 number nearest to mantissa * 10^exponent, in the fast cases: false otherwise, or if
/// it may be beyond 1e38.
bool to_nearest(std::uint64_t mantissa, int exponent, double& value);

/// Bytes from a number's start on that read_decimal may read.
inline constexpr std::ptrdiff_t decimal_reach = 48;

/// Reads `-1.25`, `7`, `2.5e-3` in JSON's grammar: at most 7 digits before the point and 19 in all,
/// not counting leading zeros. Returns its end, and null for other text or if the value is not a
/// fast case; the value is correctly rounded, below 1e38, and not half-way between two float32
/// numbers, so that the float32 nearest to it is the one nearest to the text. The bytes from `at`
/// to at + decimal_reach must be readable.
inline const char* read_decimal(const char* at, double& value) {
    const std::uint64_t negative = *at == '-' ? 1 : 0;
    at += negative;
    std::uint64_t mantissa;
    unsigned digits = 1;
    if (const auto first = static_cast<unsigned char>(*at - '0'); first <= 9 && at[1] == '.') {
        mantissa = first;
        ++at;
    } else {
        const DigitRun whole(at);
        digits = whole.count();
        if (digits == 0 || digits == 8 || (digits > 1 && *at == '0')) return nullptr;
        mantissa = whole.value();
        at += digits;
    }
    int exponent = 0;
    if (*at == '.') {
        const DigitRun front(at + 1), middle(at + 9);
        // Most numbers have 6 to 10 decimals: branchless selection is faster than jumps.
        const unsigned middle_count = front.count() == 8 ? middle.count() : 0;
        unsigned decimals = front.count() + middle_count;
        if (decimals == 0 || digits + decimals > 19) return nullptr;
        mantissa = mantissa * integer_powers_of_ten[decimals] +
                   front.value() * integer_powers_of_ten[middle_count] +
                   (middle_count == 0 ? 0 : middle.value());
        if (middle_count == 8) {
            const DigitRun last(at + 17);
            if (last.count() == 8 || mantissa >= integer_powers_of_ten[19 - last.count()])
                return nullptr;
            mantissa = mantissa * integer_powers_of_ten[last.count()] + last.value();
            decimals += last.count();
        }
        exponent = -static_cast<int>(decimals);
        at += 1 + decimals;
    }
    if ((*at | 0x20) == 'e') {
        ++at;
        const bool down = *at == '-';
        if (down || *at == '+') ++at;
        const DigitRun power(at);
        if (power.count() == 0 || power.count() > 4) return nullptr;
        exponent += down ? -static_cast<int>(power.value()) : static_cast<int>(power.value());
        at += power.count();
    }
    double magnitude;
    if (mantissa <= std::uint64_t{1} << 53 && exponent >= -22 && exponent <= 0) {
        // Both are float64 numbers, so that the one rounding gives the nearest (Clinger, "How to
        // read floating point numbers accurately", 1990).
        magnitude = static_cast<double>(static_cast<std::int64_t>(mantissa)) /
                    exact_powers_of_ten[static_cast<std::size_t>(-exponent)];
    } else if (!to_nearest(mantissa, exponent, magnitude)) {
        return nullptr;
    }
    const auto bits = std::bit_cast<std::uint64_t>(magnitude);
    constexpr std::uint64_t below_float32 = 0x1fffffff, half_way = 0x10000000;
    if ((bits & below_float32) == half_way || (magnitude < 0x1p-126 && bits != 0)) return nullptr;
    value = std::bit_cast<double>(bits | negative << 63);
    return at;
}

// Powers of ten to 128 bits, for conversions between decimal and binary.

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
