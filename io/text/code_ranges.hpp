// Sets of characters, as Unicode's files list them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace attn::io {

using CodeRange = std::pair<char32_t, char32_t>;  ///< the first and the last

template <std::size_t N>
bool contains(const std::array<CodeRange, N>& ranges, char32_t code) {
    return std::any_of(ranges.begin(), ranges.end(), [code](const CodeRange& range) {
        return code >= range.first && code <= range.second;
    });
}

}  // namespace attn::io
