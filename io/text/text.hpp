// Text for people: aligned columns, widths on a terminal, wrapped lines, markup, lists; and names
// for C.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn::io {

using Cells = std::vector<std::vector<std::string>>;

/// One line per row; the first column is aligned left, the others right, two blanks between them.
/// Rows have as many cells as the first one.
std::string align_columns(const Cells& cells);

/// Columns of a UTF-8 text: 0 for combining characters and joiners, 2 for wide East Asian
/// characters and emoji, else 1, as utf8proc has them.
std::size_t display_width(std::string_view text);

/// The columns of the widest of these texts, or of what `text_of` gives for each; 0 of none.
template <class Texts, class TextOf = std::identity>
std::size_t widest_of(const Texts& texts, const TextOf& text_of = {}) {
    std::size_t widest = 0;
    for (const auto& text : texts)
        widest = std::max(widest, display_width(std::invoke(text_of, text)));
    return widest;
}

/// The words of `text`, each separated by a blank or a line break, in lines of at most `columns`
/// columns. Further blanks within a line are kept. A longer word has its own line. A number stays
/// with the name before it, and a percent sign with its number, if a line holds both. The first
/// line begins at column `from`, the others after `indent` blanks. No line break at the end.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent = 0,
                    std::size_t from = 0);

/// The text with these characters replaced.
std::string replaced(std::string_view text,
                     std::initializer_list<std::pair<char, std::string_view>> by);

/// The text with &, < and > escaped, for SVG and HTML. Only for text, not for attributes.
std::string markup_text(std::string_view text);

/// A name with '_' for each character that C does not allow in names, and before a first digit.
std::string c_name(std::string_view name);

/// "a, b or c"; or another word before the last one.
std::string listed(const std::vector<std::string_view>& names, std::string_view last = "or");

/// "a, b, c" of the items, or of what `text_of` gives for each.
template <class Items, class TextOf = std::identity>
std::string comma_list(const Items& items, const TextOf& text_of = {}) {
    std::string list;
    for (const auto& item : items) {
        if (!list.empty()) list += ", ";
        list += std::invoke(text_of, item);
    }
    return list;
}

/// The parts that each end with this character; a last one without it counts. Not by a string
/// stream, which catches std::bad_alloc and ends early.
inline std::vector<std::string_view> split_text(std::string_view text, char end) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t at = text.find(end);
        parts.push_back(text.substr(0, at));
        text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    }
    return parts;
}

/// The text from its first character on that is not white space of JSON.
inline std::string_view after_blanks(std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

/// The same, up to the last such character.
inline std::string_view trimmed(std::string_view text) {
    text = after_blanks(text);
    return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

/// Each line without its line feed.
inline std::vector<std::string_view> lines_of(std::string_view text) {
    return split_text(text, '\n');
}

}  // namespace attn::io
