// The number of terminal columns of a text.
#pragma once

#include <cstddef>
#include <string_view>

namespace attn::io {

/// Columns of a UTF-8 text: 0 for combining characters and joiners, 2 for wide East Asian characters
/// and emoji, else 1. Source: utf8proc's widths.
std::size_t display_width(std::string_view text);

}  // namespace attn::io
