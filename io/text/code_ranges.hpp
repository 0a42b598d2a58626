// Sets of characters, as Unicode's files list them.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace attn::io {

using CodeRange = std::pair<char32_t, char32_t>;  ///< the first and the last

/// Whether one of the ranges, which are in order, has the character.
inline bool contains(std::span<const CodeRange> ranges, char32_t code) {
    const auto after = std::upper_bound(
        ranges.begin(), ranges.end(), code,
        [](char32_t value, const CodeRange& range) { return value < range.first; });
    return after != ranges.begin() && code <= std::prev(after)->second;
}

}  // namespace attn::io
