// What values the options of questions take.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "cli/request/request.hpp"
#include "core/operator/arrays.hpp"

namespace attn::cli::option_rows {

inline constexpr double most = std::numeric_limits<double>::max();
inline constexpr double above_zero = std::numeric_limits<double>::denorm_min();
inline constexpr Limits positive{above_zero, most, "a number above 0"};

/// Larger than any layer, and small enough that products of two sizes fit in 64 bits.
inline constexpr double largest_size = 0x1p31;
inline constexpr Limits size{1, largest_size};
inline constexpr Limits from_0{};
inline constexpr Limits at_least_0{0, most, "a number of at least 0"};
inline constexpr Limits counts{0, largest_size, "integers from 0, as in 1,2"};
inline constexpr Limits drawn{
    1, largest_size,
    "2 or 3 sizes separated by commas, as 6,3 for (tokens, d_in) or 2,6,3 for "
    "(batch, tokens, d_in); sdpa: 2 to 4, as 2,4,6,3",
    4, 2};
inline constexpr Limits order{0, 0, "query, key, value and out, as in key,query,value", 4};
inline constexpr Limits names{0, 0, "names; expected one name or more",
                              1000};  // there are about forty
inline constexpr Limits constants{0, 0, "numbers, or a file", std::size_t{1} << 31};
inline constexpr Limits decays{-std::numeric_limits<double>::infinity(), most,
                               "numbers or -Infinity, or a file", std::size_t{1} << 31};
inline constexpr Limits words{0, 0, "strings; expected one per token"};

/// The help of --emit, which lists all arrays.
inline constexpr auto emit_help = [] {
    std::array<char, 2048> text{};  // zeros end it; too few would not compile
    auto end = text.begin();
    const auto add = [&](std::string_view part) { end = std::ranges::copy(part, end).out; };
    add("arrays to write: all, or some of ");
    for (const ArrayRow& array : emitted_arrays) {
        if (&array != &emitted_arrays.front()) add(", ");
        add(array.name);
    }
    add(" (default context_vectors,attention_weights; csv, tsv and npy: context_vectors)");
    return text;
}();

}  // namespace attn::cli::option_rows
