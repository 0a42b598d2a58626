// A search pattern: a string, or a regular expression in Oniguruma's syntax.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/part.hpp"
#include "io/tokenizer/setting.hpp"

namespace attn::io {

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

    /// `place` is the location of the expression in errors. Errors: kind input if it is invalid;
    /// kind unsupported if PCRE2 cannot express it.
    static Pattern regex(std::string_view expression, const std::string& place);

    /// {"String": "..."} or {"Regex": "..."}.
    static Pattern read(const Setting& setting);

    /// Errors: kind input if matching exceeds a limit of steps or time.
    Matches find(std::string_view text) const;

private:
    struct Compiled;
    std::string literal_, place_;
    std::shared_ptr<const Compiled> compiled_;  // null: a literal
};

/// The expression in PCRE2's syntax. Oniguruma's (as Ruby writes it) differs: classes may be nested
/// and intersected, (?m) means (?s), \h is a hexadecimal digit. The character classes are those of
/// Oniguruma 6.9.10 with Unicode 16. Errors: as Pattern::regex.
std::string pcre2_syntax(std::string_view expression, const std::string& place);

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

/// The characters that satisfy a condition, each as a match.
Matches find_characters(std::string_view text, bool (*is_match)(char32_t));

}  // namespace attn::io
