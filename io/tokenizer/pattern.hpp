// Regular expressions, and the splits that they make.
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

}  // namespace attn::io
