// Texts that stand in pictures: tokens hold anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn::io {

/// The text on one line: control characters become their pictures (U+240A for a line's end), what
/// has none or XML forbids becomes U+FFFD, piles of combining marks are cut, and a text wider than
/// `columns` ends in an ellipsis.
std::string label_text(std::string_view text, std::size_t columns);

}  // namespace attn::io
