// Text in pictures: tokens may contain any characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn::io {

/// The text on one line: control characters become their pictures (U+240A for a line's end),
/// characters without one, or that XML forbids, become U+FFFD, stacks of combining marks are
/// truncated, and a text wider than `columns` ends in an ellipsis.
std::string label_text(std::string_view text, std::size_t columns);

}  // namespace attn::io
