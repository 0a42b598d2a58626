#include "core/scan/fixed_sums.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace attn {
namespace {

__extension__ using Unsigned128 = unsigned __int128;

constexpr Int128 largest128 = static_cast<Int128>(~Unsigned128{0} >> 1);

/// The number of bits up to the highest one that is set.
int width_of_bits(Unsigned128 x) {
    const auto high = static_cast<std::uint64_t>(x >> 64);
    return high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                     : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(x)));
}

}  // namespace

bool multiply(Int128 a, Int128 b, Int128& product) {
    if (b != 0 && a > largest128 / b) return false;
    product = a * b;
    return true;
}

std::string decimal_of(Int128 value) {
    const bool is_negative = value < 0;
    Unsigned128 rest =
        is_negative ? -static_cast<Unsigned128>(value) : static_cast<Unsigned128>(value);
    std::string digits;
    do {
        digits += static_cast<char>('0' + static_cast<int>(rest % 10));
        rest /= 10;
    } while (rest != 0);
    if (is_negative) digits += '-';
    std::ranges::reverse(digits);
    return digits;
}

bool read_decimal_of(std::string_view text, Int128& value) {
    const bool is_negative = text.starts_with('-');
    if (is_negative) text.remove_prefix(1);
    Int128 read = 0;
    for (const char digit : text) {
        if (digit < '0' || digit > '9') return false;
        if (!multiply(read, Int128{10}, read) ||
            __builtin_add_overflow(read, Int128{digit - '0'}, &read))
            return false;
    }
    value = is_negative ? -read : read;
    return !text.empty();
}

std::int64_t to_fixed(double value) {
    return std::llrint(value * 0x1p24);
}

std::size_t Bins::of(std::int64_t fixed) const {
    if (fixed <= 0) return 0;
    constexpr auto last = static_cast<std::int64_t>(bin_count) - 1;
    if (!is_logarithmic)
        return static_cast<std::size_t>(std::min(fixed >> (fraction_bits - bits), last));
    // The floor of 2 log2(value): that of log2 of its square, whose fraction has 48 bits.
    const auto square = static_cast<Unsigned128>(fixed) * static_cast<Unsigned128>(fixed);
    const std::int64_t half_octave = width_of_bits(square) - 1 - 2 * fraction_bits;
    constexpr std::int64_t first = -16;
    return static_cast<std::size_t>(std::clamp(half_octave - first, std::int64_t{0}, last));
}

bool FixedSums::add(std::int64_t fixed, const Bins& bins_of) {
    least = count == 0 ? fixed : std::min(least, fixed);
    most = count == 0 ? fixed : std::max(most, fixed);
    ++bins[bins_of.of(fixed)];
    return !__builtin_add_overflow(count, std::uint64_t{1}, &count) &&
           !__builtin_add_overflow(sum, Int128{fixed}, &sum) &&
           !__builtin_add_overflow(squares, Int128{fixed} * fixed, &squares);
}

bool FixedSums::add(const FixedSums& other) {
    if (other.count == 0) return true;
    least = count == 0 ? other.least : std::min(least, other.least);
    most = count == 0 ? other.most : std::max(most, other.most);
    // No bin exceeds the count.
    for (std::size_t i = 0; i < bin_count; ++i) bins[i] += other.bins[i];
    return !__builtin_add_overflow(count, other.count, &count) &&
           !__builtin_add_overflow(sum, other.sum, &sum) &&
           !__builtin_add_overflow(squares, other.squares, &squares);
}

/// n times the variance is squares - sum^2 / n. With sum = q n + r it is the integer
/// squares - q^2 n - 2 q r, less r^2 / n, so that little cancels.
double FixedSums::variance() const {
    const auto n = static_cast<Int128>(count);
    const Int128 q = sum / n, r = sum % n;
    const Int128 whole = squares - q * q * n - 2 * q * r;
    const auto rest = static_cast<double>(r) / static_cast<double>(count) * static_cast<double>(r);
    return std::max(0.0, static_cast<double>(whole) - rest) / static_cast<double>(count) * 0x1p-48;
}

}  // namespace attn
