#include "io/text/text.hpp"

#include <utf8proc.h>

#include "io/text/number_text.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {

std::string align_columns(const Cells& cells) {
    std::vector<std::size_t> widths(cells.empty() ? 0 : cells[0].size(), 0);
    for (const auto& row : cells)
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], display_width(row[i]));
    std::string text;
    for (const auto& row : cells) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string space(widths[i] - display_width(row[i]), ' ');
            text += i == 0 ? row[i] + space : "  " + space + row[i];
        }
        text += '\n';
    }
    return text;
}

std::size_t display_width(std::string_view text) {
    int width = 0;
    while (!text.empty())
        width += utf8proc_charwidth(static_cast<utf8proc_int32_t>(take_character(text)));
    return static_cast<std::size_t>(width);
}

namespace {

std::size_t word_end(std::string_view text, std::size_t from = 0) {
    return std::min(text.find(' ', from), text.size());
}

/// The end of the words at the start of `text` that a line of this width does not separate.
std::size_t unit_end(std::string_view text, std::size_t columns) {
    const auto is_number = [&](std::size_t at) {
        at = text.find_first_not_of("-[", at);
        return at < text.size() && is_digit(text[at]);
    };
    const std::size_t word = word_end(text);
    std::size_t end = word;
    if (!is_number(0) && is_number(end + 1)) end = word_end(text, end + 1);
    if (end + 1 < text.size() && text[end + 1] == '%') end = word_end(text, end + 1);
    return display_width(text.substr(0, end)) <= columns ? end : word;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent,
                    std::size_t from) {
    std::string words(text), lines;
    std::ranges::replace(words, '\n', ' ');
    std::size_t column = from;
    const std::size_t first = std::min(words.find_first_not_of(' '), words.size());
    for (text = std::string_view(words).substr(first); !text.empty();) {
        const std::size_t end = unit_end(text, columns - std::min(indent, columns));
        const std::size_t width = display_width(text.substr(0, end));
        const bool is_first = text.size() == words.size() - first;
        const bool fits = is_first || column + 1 + width <= columns;
        if (!is_first) lines += fits ? " " : '\n' + std::string(indent, ' ');
        column = (fits ? column + (is_first ? 0 : 1) : indent) + width;
        lines += text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::string replaced(std::string_view text,
                     std::initializer_list<std::pair<char, std::string_view>> by) {
    std::string made;
    made.reserve(text.size());
    for (const char& c : text) {
        const auto row = std::ranges::find(by, c, [](const auto& pair) { return pair.first; });
        made += row != by.end() ? row->second : std::string_view(&c, 1);
    }
    return made;
}

std::string markup_text(std::string_view text) {
    return replaced(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}});
}

std::string c_name(std::string_view name) {
    std::string made;
    for (const char c : name) {
        if (is_digit(c) && made.empty()) made += '_';
        made += is_digit(c) || is_letter(c) ? c : '_';
    }
    return made;
}

std::string listed(const std::vector<std::string_view>& names, std::string_view last) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i != 0) text += i + 1 == names.size() ? " " + std::string(last) + " " : ", ";
        text += names[i];
    }
    return text;
}

}  // namespace attn::io
