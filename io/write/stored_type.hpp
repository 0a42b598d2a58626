// The types that --store rounds numbers to, and the words of bits that files then hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/named_array.hpp"

namespace attn::io {

enum class StoredKind { float16, bfloat16, int8, fixed };
inline constexpr std::array<std::string_view, 4> stored_kind_names{"float16", "bfloat16", "int8",
                                                                   "fixed"};

/// float16, bfloat16; int8 with the value of 1; fixed point of `bits`, of which `fraction` follow
/// the point. Only the members of its kind count.
struct StoredType {
    StoredKind kind = StoredKind::float16;
    double scale = 1;
    int bits = 0, fraction = 0;

    bool is_integer() const { return kind == StoredKind::int8 || kind == StoredKind::fixed; }
    /// The bits of a word.
    int width() const { return kind == StoredKind::fixed ? bits : is_integer() ? 8 : 16; }
};

/// A number in the type, rounded to nearest, ties to even.
struct StoredWord {
    std::int64_t word;  ///< an integer, or the bits of a floating-point number
    bool saturated;     ///< beyond the type's largest number
};
StoredWord stored(double number, const StoredType& type);

/// The type named by "float16", "bfloat16", "int8:0.05" or "fixed:16,8". Returns what is wrong and
/// what was expected, or nothing.
std::string parse_stored_type(std::string_view text, StoredType& type);

/// The text that parse_stored_type takes.
std::string text_of(const StoredType& type);

/// A report's arrays of real numbers in another type. Arrays of integers stay as they are.
struct StoredArrays {
    StoredType type;
    std::vector<std::uint64_t> saturated;  ///< numbers of each array of the report
    std::vector<std::uint64_t> sizes;      ///< all numbers of each
};

/// Counts the saturated numbers of the arrays, which must not be streams. Errors: kind input, of
/// the setting `store`, for NaN in a type of integers.
StoredArrays stored_arrays(const std::vector<NamedArray>& arrays, const StoredType& type);

/// What became of saturated numbers: "3 of 144 numbers saturated at -128 or 127".
std::string saturation_text(const StoredArrays& arrays, std::size_t place);

/// Whether the array's numbers are real.
bool is_real(const NamedArray& array);

}  // namespace attn::io
