// Characters of UTF-8 text, and which of them must not be sent to a terminal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/function_ref.hpp"

namespace attn::io {

/// The replacement for a character that cannot be shown.
inline constexpr char32_t replacement = 0xfffd;

/// Bytes of the character at the start of a text; 0 if they are not UTF-8. Source: RFC 3629.
std::size_t character_size(std::string_view text);

/// Removes the first character of a non-empty text. A byte that is not UTF-8 is U+FFFD.
char32_t take_character(std::string_view& text);

void append_utf8(std::string& text, char32_t code);

/// A character of a text, or one byte of it that is not UTF-8.
struct Character {
    std::string_view bytes;
    char32_t code = 0;
    /// It is visible and affects only itself: it moves no cursor, ends no line and changes no text
    /// direction. A joiner or style selector counts as visible between the letters or emoji that it
    /// applies to.
    bool is_shown = true;
};

/// All of them, in order.
void for_each_character(std::string_view text, FunctionRef<void(const Character&)> take);

/// The text with a code for each character that is not shown, as in Python: \x1b, \u200b,
/// \U000e0041, and \xff for a byte that is not UTF-8. For untrusted text on one line of a terminal,
/// a page or a picture.
std::string printable(std::string_view text);

/// The code of a character as "\u" and four digits, for a code below 2^16.
void append_unicode_escape(std::string& text, char32_t code);

// Sets of characters, as Unicode's files list them.

using CodeRange = std::pair<char32_t, char32_t>;  ///< the first and the last

/// Whether one of the ranges, which are in order, has the character.
inline bool contains(std::span<const CodeRange> ranges, char32_t code) {
    const auto after = std::upper_bound(
        ranges.begin(), ranges.end(), code,
        [](char32_t value, const CodeRange& range) { return value < range.first; });
    return after != ranges.begin() && code <= std::prev(after)->second;
}

// GPT-2's alphabet of bytes: printable bytes are themselves, and the others, in order, are the
// characters from U+0100 on. Source: bytes_to_unicode of openai/gpt-2, encoder.py.

/// Each byte as its character.
std::string in_byte_alphabet(std::string_view bytes);

/// The bytes that a text in this alphabet spells; the text itself if it has other characters.
std::string from_byte_alphabet(std::string_view text);

}  // namespace attn::io
