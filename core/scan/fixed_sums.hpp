// Sums of many values that do not depend on their order: each value is first rounded to a multiple
// of 2^-24, and integers are added.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace attn {

__extension__ using Int128 = __int128;

std::string decimal_of(Int128 value);
/// False for anything but an optional sign and digits, and for numbers beyond 128 bits.
bool read_decimal_of(std::string_view text, Int128& value);

/// The product of two numbers that are not negative; false if it exceeds 127 bits. Clang's own
/// function for it is not in the library of GCC.
[[nodiscard]] bool multiply(Int128 a, Int128 b, Int128& product);

inline constexpr int fraction_bits = 24;
inline constexpr std::size_t bin_count = 64;
/// Magnitudes of values are less. The squares of 2^31 such values fit in 127 bits, and those of
/// 2^79 values up to 1.
inline constexpr double value_limit = 0x1p24;

/// `value` * 2^24, rounded to the nearest integer, ties to even. The magnitude of `value` must be
/// less than value_limit.
std::int64_t to_fixed(double value);
inline double from_fixed(std::int64_t fixed) {
    return static_cast<double>(fixed) * 0x1p-24;
}

/// The bins of a histogram. Bin 0 also has all values below it, the last bin all above it.
struct Bins {
    bool is_logarithmic = false;
    /// Linear: bin b has the values from b 2^-bits on. Logarithmic: from 2^((b - 16) / 2) on.
    int bits = 0;

    std::size_t of(std::int64_t fixed) const;
};

/// The values of one statistic of one head.
struct FixedSums {
    std::uint64_t count = 0;
    Int128 sum = 0, squares = 0;       ///< of the values times 2^24, and of their squares
    std::int64_t least = 0, most = 0;  ///< 0 without values
    std::array<std::uint64_t, bin_count> bins{};

    /// False, and the sums are then invalid, if one exceeds its type.
    [[nodiscard]] bool add(std::int64_t fixed, const Bins& bins_of);
    [[nodiscard]] bool add(const FixedSums& other);

    /// Of at least one value, in units of the value.
    double mean() const { return static_cast<double>(sum) / static_cast<double>(count) * 0x1p-24; }
    /// The mean square less the square of the mean.
    double variance() const;

    bool operator==(const FixedSums&) const = default;
};

}  // namespace attn
