// Properties and normal forms of characters, as the library tokenizers has them: each of its parts
// has its own version of Unicode, from 8 to 17. utf8proc's data is corrected to theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attn::io {

/// Unicode's White_Space.
bool is_white_space(char32_t code);

/// A combining mark, for StripAccents.
bool is_mark(char32_t code);

/// The same, for BertNormalizer: no marks that take space.
bool is_nonspacing_mark(char32_t code);

/// A control or format character, or one for private use; not an unassigned one.
bool is_control(char32_t code);

/// ASCII's punctuation and symbols, and Unicode's punctuation.
bool is_punctuation(char32_t code);

bool is_numeric(char32_t code);

/// Part of a word in Rust's regular expressions: \w.
bool is_word(char32_t code);

/// An ideograph that BERT writes as a word.
bool is_ideograph(char32_t code);

/// Appends the character in lower case, whatever the characters around it.
void append_lowercase(std::string& text, char32_t code);

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// The text, which must be UTF-8, in a normal form. Errors: kind input if it would be too long.
std::string normal_form(std::string_view text, NormalForm form);

/// Bytes of the extended grapheme cluster at the start of a text that is not empty.
std::size_t grapheme_size(std::string_view text);

}  // namespace attn::io
