// A text with sections that only some cases have, and values in it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace attn::cli {

/// A condition, a size or a text.
struct TemplateValue {
    // NOLINTBEGIN(google-explicit-constructor): rows of values are read as a table
    TemplateValue(bool is_true) : text(is_true ? "yes" : ""), is_condition(true) {}
    TemplateValue(std::size_t size) : text(std::to_string(size)) {}
    TemplateValue(std::string words) : text(std::move(words)) {}
    TemplateValue(std::string_view words) : text(words) {}
    TemplateValue(const char* words) : text(words) {}
    // NOLINTEND(google-explicit-constructor)

    std::string text;
    bool is_condition = false;
};
using TemplateRows = std::initializer_list<std::pair<std::string_view, TemplateValue>>;

/// What one case puts into a template, by name. A value is a condition too, true if not empty,
/// unless a condition has its name.
struct TemplateCase {
    TemplateCase() = default;
    TemplateCase(TemplateRows rows) { add(rows); }
    void add(TemplateRows rows);

    std::map<std::string, bool, std::less<>> conditions{};
    std::map<std::string, std::string, std::less<>> values{};
};

/// The text of a template. A template is the text itself, and in it
///
///     @NAME@                in a line: the value NAME, whose lines are aligned with the first. A
///                           line of nothing but empty values is left out;
///     @if NAME !OTHER       the lines up to `@else` or `@end` are kept if NAME is true and
///                           OTHER is not; those below `@else` otherwise;
///     @if NAME !OTHER: LINE the same for one line, which may be any of these;
///     @for X in WORD WORD   the lines up to `@end` for each word, which replaces $X in them;
///     @let NAME TEXT        sets a value;
///     @step NAME WORD TEXT  the line `WORD TEXT`, after which the value NAME is WORD;
///     @append NAME + TEXT   sets a value to `VALUE + TEXT`, or to TEXT if it is empty;
///     @once LINE            a line that is in the text once, with the same values;
///     @def NAME X Y         names the lines up to `@end`;
///     @NAME WORD WORD       those lines, with the words in place of $X and $Y;
///     @# TEXT               nothing: a comment.
///
/// Each but the first is alone on its line, which may be indented, and may have values in it. The
/// names of $X are letters, so that `$X_weight` has one. An @ before a blank is a part of the text.
/// Blank lines before all others are left out. Values are not searched for names. Throws
/// std::logic_error for a name that has no value, or no lines, where it is kept.
std::string fill_template(std::string_view text, TemplateCase with);

}  // namespace attn::cli
