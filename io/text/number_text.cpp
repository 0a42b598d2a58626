#include "io/text/number_text.hpp"

#include <cmath>

#include "io/text/decimal.hpp"

namespace attn::io {

namespace {

template <class... Arguments>
char* write(char* at, Arguments... arguments) {
    return std::to_chars(at, at + max_number_length, arguments...).ptr;
}

template <class... Arguments>
std::string text_of(Arguments... arguments) {
    std::array<char, max_number_length> text;
    return {text.data(), write(text.data(), arguments...)};
}

/// digits * 10^exponent, not zero; at most 9 digits.
struct Decimal {
    std::uint32_t digits;
    int exponent;
};

constexpr int min_power = -37, max_power = 45;

/// The first 64 bits of powers of ten, rounded up.
constexpr auto powers = [] {
    std::array<std::uint64_t, max_power - min_power + 1> table{};
    for (int i = min_power; i <= max_power; ++i)
        table[static_cast<std::size_t>(i - min_power)] =
            power_of_ten(i).high + (power_of_ten(i).low != 0 ? 1 : 0);
    return table;
}();

/// floor(power * factor / 2^64), with the last bit set unless the rest is negligible.
std::uint32_t round_to_odd(std::uint64_t power, std::uint32_t factor) {
    const Uint128 product = Uint128{power} * factor;
    const auto high = static_cast<std::uint32_t>(product >> 64);
    const auto rest = static_cast<std::uint32_t>(product >> 32);
    return high | (rest > 1 ? 1 : 0);
}

/// The number c * 2^q, not zero; uneven: its lower neighbour is nearer.
struct Binary {
    std::uint32_t c;
    int q;
    bool uneven;
};

Binary binary_of(std::uint32_t fraction, int biased_exponent) {
    return {biased_exponent == 0 ? fraction : fraction | std::uint32_t{1} << 23,
            (biased_exponent == 0 ? 1 : biased_exponent) - 150,
            fraction == 0 && biased_exponent > 1};
}

/// Of a number of a type with a unit c that has fewer bits.
Binary binary_of(float value, const NumberTypeRow& type) {
    const int least = std::ilogb(type.least), digits = -std::ilogb(type.unit);
    const int q = std::max(std::ilogb(value) - digits + 1, least);
    const auto c = static_cast<std::uint32_t>(std::ldexp(std::abs(value), -q));
    return {c, q, c == std::uint32_t{1} << (digits - 1) && q > least};
}

Decimal shortest(const Binary& binary) {
    const auto [c, q, uneven] = binary;
    const std::uint32_t outside = c & 1;  // midpoints round only to an even number
    // floor(log10(2^q)), or of 3/4 of it.
    const int k = (q * 1262611 - (uneven ? 524031 : 0)) >> 22;
    const int shift = q + log2_of_power_of_ten(-k) + 1;
    const std::uint64_t power = powers[static_cast<std::size_t>(-k - min_power)];
    // Four times the number and the midpoints, over 10^k.
    const std::uint32_t number = round_to_odd(power, 4 * c << shift);
    const std::uint32_t lower =
        round_to_odd(power, (4 * c - 2 + (uneven ? 1 : 0)) << shift) + outside;
    const std::uint32_t upper = round_to_odd(power, (4 * c + 2) << shift) - outside;
    const std::uint32_t s = number / 4, tens = s / 10;
    const bool below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
    const bool down = lower <= 4 * s, up = 4 * s + 4 <= upper;
    const std::uint32_t middle = 4 * s + 2;
    const bool nearer_up = (number > middle) | ((number == middle) & ((s & 1) != 0));
    // The outcome is unpredictable: branchless selection instead of jumps.
    const std::uint32_t by_ten = ((below != above) & (tens != 0)) ? 1 : 0;
    const std::uint32_t one = s + (((down != up) & up) | ((down == up) & nearer_up) ? 1 : 0);
    const std::uint32_t ten = tens + (above ? 1 : 0);
    return {one ^ ((one ^ ten) & (0 - by_ten)), k + static_cast<int>(by_ten)};
}

constexpr std::array<std::uint32_t, 10> small_powers{
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

int count_digits(std::uint32_t number) {
    const int guess =
        static_cast<int>(std::bit_width(number)) * 1233 >> 12;  // log10(2) = 1233 / 4096
    return guess + (number >= small_powers[static_cast<std::size_t>(guess)] ? 1 : 0);
}

/// Eight digits, the first in the lowest byte: split in fours, in pairs and singly.
std::uint64_t eight_digits(std::uint32_t number) {
    const std::uint64_t fours = number / 10000 | std::uint64_t{number % 10000} << 32;
    const std::uint64_t hundreds = fours * 10486 >> 20 & 0x0000007f0000007fu;
    const std::uint64_t pairs = hundreds | (fours - 100 * hundreds) << 16;
    const std::uint64_t tens = pairs * 103 >> 10 & 0x000f000f000f000fu;
    return tens | (pairs - 10 * tens) << 8;
}

void store(char* at, std::uint64_t first_lowest) {
    if constexpr (std::endian::native == std::endian::big)
        for (int i = 0; i < 8; ++i) at[i] = static_cast<char>(first_lowest >> (8 * i));
    else
        std::memcpy(at, &first_lowest, sizeof first_lowest);
}

}  // namespace

char* write_number(char* at, float value, std::optional<int> decimals, NumberType type) {
    return decimals ? write(at, value, std::chars_format::fixed, *decimals)
                    : write_shortest(at, value, type);
}

char* write_number(char* at, double value, std::optional<int> decimals, NumberType) {
    return decimals ? write(at, value, std::chars_format::fixed, *decimals) : write(at, value);
}

char* write_number(char* at, std::int64_t value, std::optional<int>, NumberType) {
    return write(at, value);
}

std::string scientific_text(double value, int decimals) {
    return text_of(value, std::chars_format::scientific, decimals);
}

std::string fixed_text(double value, int decimals) {
    if (std::isnan(value)) return "nan";
    return text_of(value, std::chars_format::fixed, decimals);
}

std::string general_text(double value, int digits) {
    return text_of(value, std::chars_format::general, digits);
}

// Giulietti, "The Schubfach way to render doubles" (2020), figure 4, for float32: with 10^k just
// below the distance of neighbouring numbers, there is a multiple of 10^(k+1) or else of 10^k
// between the midpoints to the neighbours, and three products of 96 bits determine both.

char* write_shortest(char* at, float value, NumberType type) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    *at = '-';
    at += bits >> 31;
    if (bits << 1 == 0) {
        *at = '0';
        return at + 1;
    }
    const Decimal decimal = shortest(
        is_rounded(type) ? binary_of(value, row_of(type))
                         : binary_of(bits & 0x7fffff, static_cast<int>(bits >> 23 & 0xff)));
    // As d.dddddddd * 10^exponent, zeros at the end included.
    const int count = count_digits(decimal.digits);
    const std::uint32_t nine = decimal.digits * small_powers[static_cast<std::size_t>(9 - count)];
    const std::uint32_t first = nine / small_powers[8];
    const std::uint64_t others = eight_digits(nine % small_powers[8]);
    const std::uint64_t text = others | 0x3030303030303030u;
    const int length = 9 - std::countl_zero(others) / 8;  // without the zeros
    const int exponent = decimal.exponent + count - 1;
    const auto first_text = static_cast<char>('0' + first);
    const int alone = length == 1 ? 1 : 0;  // 4e-05 has no point: scientific is shorter by one

    if (exponent >= -4 + alone && exponent < 7 && exponent - length + 1 <= 5 - alone) {
        // 0.00ddd or ddd.ddd, again without jumps: the part before the point, the point, then the
        // position of the first digit and the digits after the point.
        const bool small = exponent < 0;
        const int whole = small ? 0 : exponent, zeros = small ? -exponent : 0;
        store(at, small ? 0x303030302e30u : (text << 8 | static_cast<unsigned char>(first_text)));
        at[whole + 1] = '.';
        at[small ? zeros + 1 : 0] = first_text;
        store(at + 2 + whole + zeros, text >> (8 * whole));
        const int behind = length > whole + 1 ? length + 1 : whole + 1;
        return at + (small ? zeros + 1 + length : behind);
    }
    if (exponent >= 7 && exponent - length + 1 <= 5 - alone) {
        const float size = value < 0 ? -value : value;
        std::uint64_t whole = static_cast<std::uint64_t>(size);
        if (is_rounded(type))
            whole = decimal.digits *
                    std::uint64_t{
                        small_powers[static_cast<std::size_t>(std::max(decimal.exponent, 0))]};
        if (exponent >=
            length - 1)  // an integer of possibly more than 9 digits: exact, as in printf
            return std::to_chars(at, at + max_float_length, whole).ptr;
        *at = first_text;  // exponent 7, one digit after the point
        store(at + 1, text);
        at[exponent + 2] = at[exponent + 1];
        at[exponent + 1] = '.';
        return at + length + 1;
    }
    *at = first_text;
    at[1] = '.';
    store(at + 2, text);
    at += length == 1 ? 1 : length + 1;
    const int size = exponent < 0 ? -exponent : exponent;
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    *at++ = static_cast<char>('0' + size / 10);
    *at++ = static_cast<char>('0' + size % 10);
    return at;
}

// Eisel and Lemire's algorithm (Lemire, "Number parsing at a gigabyte per second", 2021, sections 5
// to 8): the mantissa times the first 128 bits of the power of ten gives the first 64 bits of the
// product, unless these are so close to a tie that later bits would decide.
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
