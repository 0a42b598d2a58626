// Regular expressions, and the splits that they make; characters.
#pragma once

#include "io/text/utf8.hpp"
#include "io/tokenizer/tokenizer_parts.hpp"

namespace attn::io {

// Sets of characters in a regular expression, in PCRE2's syntax.

/// A set: the part that PCRE2 can write in one pair of brackets, and the rest.
class CharacterSet {
public:
    /// A range of characters, as \x{...}.
    void add(char32_t first, char32_t last);

    /// An item that may appear between brackets, without brackets of its own.
    void add_items(std::string_view items) { items_ += items; }

    /// An expression that matches one character.
    void add_expression(std::string expression) { others_.push_back(std::move(expression)); }

    bool is_empty() const { return items_.empty() && others_.empty(); }

    /// An expression that matches one character of the set, or one that is not in the set.
    std::string expression(bool is_negated) const;

private:
    std::string items_;
    std::vector<std::string> others_;
};

/// Adds a shorthand as Oniguruma defines it: the letter after the backslash, one of sSdDwWhH.
/// `in_brackets`: with other items in a class.
void add_shorthand(CharacterSet& set, char letter, bool in_brackets);

/// Adds a property by its name, that of a general category, a POSIX class or a script, or another
/// of Unicode's; [:punct:] has more than \p{Punct}. False if the name cannot be one.
bool add_property(CharacterSet& set, std::string_view name, bool is_negated, bool in_brackets);

// A search pattern: a string, or a regular expression in Oniguruma's syntax.

/// text[begin, end): a match, or the text between two matches.
struct Match {
    std::size_t begin = 0, end = 0;
    bool is_match = false;
};

/// The pieces of a whole text, in order.
using Matches = std::vector<Match>;

class Pattern {
public:
    /// Finds this string.
    static Pattern literal(std::string text);

    /// `location` is that of the expression in errors. Errors: kind input if it is invalid;
    /// kind unsupported if PCRE2 cannot express it.
    static Pattern regex(std::string_view expression, const std::string& location);

    /// {"String": "..."} or {"Regex": "..."}.
    static Pattern read(const Setting& setting);

    /// Errors: kind input if matching exceeds a limit of steps or time.
    Matches find(std::string_view text) const;

private:
    struct Compiled;
    std::string literal_, location_;
    std::shared_ptr<const Compiled> compiled_;  // null: a literal
};

/// Replaces each match by `content`.
void replace_matches(TextPart& part, const Pattern& pattern, const std::string& content);

/// The expression in PCRE2's syntax. Oniguruma's (as Ruby writes it) differs: classes may be nested
/// and intersected, (?m) means (?s), \h is a hexadecimal digit. The character classes are those of
/// Oniguruma 6.9.10 with Unicode 16. Errors: as Pattern::regex.
std::string pcre2_syntax(std::string_view expression, const std::string& location);

/// How a split treats the matches of a pattern.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Errors: kind unsupported for unknown names.
Behavior read_behavior(const Setting& setting);

/// Appends the parts that are not empty.
void append_split(std::vector<TextPart>& parts, const TextPart& part, const Matches& matches,
                  Behavior behavior);

/// Splits all parts that are not added tokens.
void split_parts(std::vector<TextPart>& parts, Behavior behavior,
                 const std::function<Matches(std::string_view)>& find);
void split_parts(std::vector<TextPart>& parts, Behavior behavior, const Pattern& pattern);

/// Runs of characters. `look(code)` tells whether a character begins one, and whether that one is a
/// match.
template <class Look>
Matches find_runs(std::string_view text, Look look) {
    Matches runs;
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t begin = text.size() - rest.size();
        const auto [begins, is_match] = look(take_character(rest));
        if (begins || runs.empty()) runs.push_back({begin, begin, is_match});
        runs.back().end = text.size() - rest.size();
    }
    return runs;
}

/// The characters that satisfy a condition, each as a match.
Matches find_characters(std::string_view text, bool (*is_match)(char32_t));

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
