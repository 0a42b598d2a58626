// Texts that stand in pictures: tokens hold anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn::io {

/// Takes one character off the front of a text that is not empty. Bytes that are no UTF-8 are
/// U+FFFD each.
char32_t take_character(std::string_view& text);

/// The text on one line: control characters become their pictures (U+240A for a line's end), what
/// XML forbids becomes U+FFFD, and a text wider than `columns` ends in an ellipsis.
std::string label_text(std::string_view text, std::size_t columns);

}  // namespace attn::io
