// Characters of UTF-8 texts, and which of them a terminal must not be sent.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn::io {

/// What stands for a character that cannot be shown.
inline constexpr char32_t replacement = 0xfffd;

/// Bytes of the character at the front of a text; 0 where they are no UTF-8. Source: RFC 3629.
std::size_t character_size(std::string_view text);

/// Takes one character off the front of a text that is not empty. A byte that is no UTF-8 is
/// U+FFFD.
char32_t take_character(std::string_view& text);

void append_utf8(std::string& text, char32_t code);

/// Characters that move a cursor, end a line or turn the direction of the text around them.
bool is_control(char32_t code);

/// The text with '?' for each of those: what others wrote, on one line of a terminal.
std::string printable(std::string_view text);

}  // namespace attn::io
