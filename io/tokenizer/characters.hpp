// What tokenizers know about characters.
#pragma once

#include "io/tokenizer/pattern.hpp"

namespace attn::io {

// Properties and normal forms of characters, as in the library tokenizers. Each part of the library
// has its own version of Unicode, from 8 to 17. The data of utf8proc is corrected accordingly.

/// Unicode's White_Space.
bool is_white_space(char32_t code);

/// The end of the white space that begins at `begin`, and the begin of that which ends at `end`.
std::size_t white_space_after(std::string_view text, std::size_t begin);
std::size_t white_space_before(std::string_view text, std::size_t end);

/// Where the last character before `end`, which is above 0, begins.
std::size_t character_before(std::string_view text, std::size_t end);

/// A combining mark, for StripAccents.
bool is_mark(char32_t code);

/// The same for BertNormalizer, which excludes spacing marks.
bool is_nonspacing_mark(char32_t code);

/// A control, format or private-use character; not an unassigned one.
bool is_control(char32_t code);

/// ASCII's punctuation and symbols, and Unicode's punctuation.
bool is_punctuation(char32_t code);

bool is_numeric(char32_t code);

/// A character of a word in Rust's regular expressions: \w.
bool is_word(char32_t code);

/// An ideograph that BERT treats as a word.
bool is_ideograph(char32_t code);

/// Appends the character in lower case, whatever the characters around it.
void append_lowercase(std::string& text, char32_t code);

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// The text, which must be UTF-8, in a normal form. Errors: kind input if it would be too long.
std::string normal_form(std::string_view text, NormalForm form);

/// The length in bytes of the extended grapheme cluster at the start of a text that is not empty.
std::size_t grapheme_size(std::string_view text);

// Splits a text where its script changes.

/// Each run of one script with the blanks after it is a match. The first run includes characters
/// without a script before it. Han, Hiragana and Katakana count as one script.
Matches find_scripts(std::string_view text);

// SentencePiece's table of replacements: a trie, and the replacement texts.

/// Source: google/sentencepiece, normalizer.cc; s-yata/darts-clone for the trie.
class Charsmap {
public:
    /// Base64 of the trie's size in bytes, its units, and the texts, each terminated by a zero
    /// byte. Errors: kind input for anything else.
    explicit Charsmap(const Setting& base64);
    /// The same of the bytes; `setting` is for errors.
    Charsmap(const std::string& bytes, const Setting& setting);

    void normalize(TextPart& part) const;

private:
    /// The replacement of the shortest entry that is a prefix of the text.
    std::optional<std::string_view> find(std::string_view text) const;

    std::vector<std::uint32_t> units_;
    std::string texts_;
};

// Differences between versions of Unicode's data: the tables of unicode_versions.txt.

/// Do not decompose, compose or move: added after Unicode 9.
extern const std::span<const CodeRange> newer_in_forms;

/// M in one of utf8proc and the normalizer StripAccents (Unicode 9) alone.
extern const std::span<const CodeRange> other_marks;

/// Mn in one of utf8proc and BertNormalizer (Unicode 8) alone.
extern const std::span<const CodeRange> other_nonspacing;

/// Cc, Cf or Co in one of utf8proc and BertNormalizer alone.
extern const std::span<const CodeRange> other_controls;

/// P in one of utf8proc and the pre-tokenizers (Unicode 8) alone.
extern const std::span<const CodeRange> other_punctuation;

/// N in one of utf8proc and the pre-tokenizers (Unicode 17) alone.
extern const std::span<const CodeRange> other_numbers;

/// Part of a word in one of utf8proc and the pre-tokenizers (Unicode 17) alone.
extern const std::span<const CodeRange> other_words;

/// Have a script in PCRE2 (Unicode 14), but none in UnicodeScripts (Unicode 9).
extern const std::span<const CodeRange> newer_in_scripts;

/// Characters with a lower case that utf8proc does not know.
struct LowercaseRange {
    char32_t first, last;
    int distance;
};
extern const std::span<const LowercaseRange> newer_lowercase;

/// Characters of a general category that PCRE2 takes for unassigned.
struct NewerCategory {
    char32_t first, last;
    const char* category;
};
extern const std::span<const NewerCategory> newer_categories;

}  // namespace attn::io
