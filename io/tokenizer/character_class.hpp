// Sets of characters in a regular expression, in PCRE2's syntax.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::io {

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

}  // namespace attn::io
