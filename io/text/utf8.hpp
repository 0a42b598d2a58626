// Characters of UTF-8 texts, and which of them a terminal must not be sent.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/function_ref.hpp"

namespace attn::io {

/// What stands for a character that cannot be shown.
inline constexpr char32_t replacement = 0xfffd;

/// Bytes of the character at the front of a text; 0 where they are no UTF-8. Source: RFC 3629.
std::size_t character_size(std::string_view text);

/// Takes one character off the front of a text that is not empty. A byte that is no UTF-8 is
/// U+FFFD.
char32_t take_character(std::string_view& text);

void append_utf8(std::string& text, char32_t code);

/// A character of a text, or one byte of it that is no UTF-8.
struct Character {
    std::string_view bytes;
    char32_t code = 0;
    /// It is seen, and only it is changed: it moves no cursor, ends no line, turns no text around
    /// it, and is not nothing at all. What joins letters or emoji, or chooses the style of one, is
    /// seen where it stands between those that it is for.
    bool is_shown = true;
};

/// All of them, in order.
void for_each_character(std::string_view text, FunctionRef<void(const Character&)> take);

/// The text with the number of each character that is not shown, as Python has it: \x1b, \u200b,
/// \U000e0041, and \xff for a byte that is no UTF-8. What others wrote, on one line of a terminal,
/// a page or a picture.
std::string printable(std::string_view text);

/// The number of a character as "\u" and so many digits, for a code below 2^16.
void append_unicode_escape(std::string& text, char32_t code);

}  // namespace attn::io
