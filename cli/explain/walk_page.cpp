// A page as plain text or Markdown; see walk_page.hpp.
#include "cli/explain/walk_page.hpp"

#include <cctype>
#include <string_view>

#include "io/text/display_width.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t text_width = 100;

/// Words that mean nothing else in Markdown. An underscore inside a name, as in d_k, means nothing
/// by itself and stays readable.
std::string escaped(std::string_view words) {
    constexpr std::string_view special = "\\`*_{}[]<>#|~&!$";
    const auto is_inside_name = [&](std::size_t at) {
        const auto is_letter = [&](std::size_t i) {
            return i < words.size() && std::isalnum(static_cast<unsigned char>(words[i])) != 0;
        };
        return words[at] == '_' && at != 0 && is_letter(at - 1) && is_letter(at + 1);
    };
    std::string text;
    for (std::size_t at = 0; at < words.size(); ++at) {
        if (special.find(words[at]) != std::string_view::npos && !is_inside_name(at)) text += '\\';
        text += words[at];
    }
    return text;
}

/// The first blank where a line may end: not before a number, which belongs to its name.
std::size_t find_break(std::string_view words) {
    std::size_t at = words.find(' ');
    while (at != std::string_view::npos && at + 1 < words.size() &&
           std::isdigit(static_cast<unsigned char>(words[at + 1])) != 0)
        at = words.find(' ', at + 1);
    return at;
}

/// Lines of at most text_width columns.
std::string wrapped(std::string_view words) {
    std::string text;
    std::size_t column = 0;
    while (!words.empty()) {
        const std::size_t blank = find_break(words);
        const std::string_view word = words.substr(0, blank);
        const std::size_t width = io::display_width(word);
        const bool is_first = column == 0, fits = column + 1 + width <= text_width;
        if (!is_first) text += fits ? ' ' : '\n';
        column = is_first || !fits ? width : column + 1 + width;
        text += word;
        words.remove_prefix(blank == std::string_view::npos ? words.size() : blank + 1);
    }
    return text;
}

}  // namespace

/// A blank line between any two things, which Markdown wants too.
void Page::part() {
    if (!text_.empty()) text_ += '\n';
}

void Page::heading(std::size_t level, const std::string& words) {
    part();
    if (is_markdown_) {
        text_ += std::string(level, '#') + " " + escaped(words) + "\n";
    } else {
        const char line[] = {'=', '-', '.'};
        text_ += words + "\n" + std::string(io::display_width(words), line[level - 1]) + "\n";
    }
}

void Page::paragraph(const std::string& words) {
    part();
    text_ += (is_markdown_ ? escaped(words) : wrapped(words)) + "\n";
}

void Page::formula(const std::vector<std::string>& lines) {
    part();
    if (is_markdown_) text_ += "```text\n";
    for (const std::string& line : lines) text_ += (is_markdown_ ? "" : "    ") + line + "\n";
    if (is_markdown_) text_ += "```\n";
}

void Page::table(const io::Cells& cells) {
    part();
    if (!is_markdown_) {
        io::Cells indented = cells;
        for (auto& row : indented) row[0].insert(0, "    ");
        text_ += io::align_columns(indented);
        return;
    }
    for (std::size_t row = 0; row < cells.size(); ++row) {
        text_ += '|';
        for (const std::string& cell : cells[row]) text_ += " " + escaped(cell) + " |";
        text_ += '\n';
        if (row != 0) continue;
        text_ += "|---|";
        for (std::size_t i = 1; i < cells[row].size(); ++i) text_ += "---:|";
        text_ += '\n';
    }
}

}  // namespace attn::cli
