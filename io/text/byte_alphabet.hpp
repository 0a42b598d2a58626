// GPT-2's alphabet of bytes: printable bytes are themselves, and the others, in order, are the
// characters from U+0100 on. Source: bytes_to_unicode of openai/gpt-2, encoder.py.
#pragma once

#include <string>
#include <string_view>

namespace attn::io {

/// Each byte as its character.
std::string in_byte_alphabet(std::string_view bytes);

/// The bytes that a text in this alphabet spells; the text itself if it has other characters.
std::string from_byte_alphabet(std::string_view text);

}  // namespace attn::io
