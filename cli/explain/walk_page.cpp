// A page as plain text or Markdown; see walk_page.hpp.
#include "cli/explain/walk_page.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "io/text/display_width.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t indent = 4;  // of formulas and tables

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

/// Lines of at most `most` columns.
std::string wrapped(std::string_view words, std::size_t most) {
    std::string text;
    std::size_t column = 0;
    while (!words.empty()) {
        const std::size_t blank = find_break(words);
        const std::string_view word = words.substr(0, blank);
        const std::size_t width = io::display_width(word);
        const bool is_first = column == 0, fits = column + 1 + width <= most;
        if (!is_first) text += fits ? ' ' : '\n';
        column = is_first || !fits ? width : column + 1 + width;
        text += word;
        words.remove_prefix(blank == std::string_view::npos ? words.size() : blank + 1);
    }
    return text;
}

/// Whether a line of numbers may end at this blank: behind a comma, before a sign or a bracketed
/// name.
bool may_end(std::string_view line, std::size_t blank) {
    const std::size_t next = line.find_first_not_of(' ', blank);
    if (next == std::string_view::npos || line[blank - 1] == ' ') return false;
    const bool is_name = line[next] == '(' && next + 1 < line.size() &&
                         std::isalpha(static_cast<unsigned char>(line[next + 1])) != 0;
    return line[blank - 1] == ',' || line[next] == '+' || line[next] == '=' || is_name;
}

/// The last place where the line may end within `most` columns, or else the first.
std::size_t find_end(std::string_view line, std::size_t from, std::size_t most) {
    std::size_t end = std::string_view::npos;
    for (std::size_t at = line.find(' ', from); at != std::string_view::npos;
         at = line.find(' ', at + 1)) {
        if (!may_end(line, at)) continue;
        if (end != std::string_view::npos && io::display_width(line.substr(0, at)) > most) break;
        end = at;
    }
    return end;
}

/// A line of numbers that goes on in the next, further in.
std::string folded(std::string line, std::size_t most) {
    std::string text;
    line.insert(0, indent, ' ');
    for (std::size_t from = indent; io::display_width(line) > most; from = 2 * indent) {
        const std::size_t end = find_end(line, from, most);
        if (end == std::string::npos) break;
        text += line.substr(0, end) + "\n";
        line.erase(0, line.find_first_not_of(' ', end)).insert(0, 2 * indent, ' ');
    }
    return text + line + "\n";
}

io::Cells indented(io::Cells cells) {
    for (auto& row : cells) row[0].insert(0, indent, ' ');
    return cells;
}

std::size_t widest_line(const std::string& text) {
    std::size_t widest = 0;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        widest = std::max(widest, io::display_width(std::string_view(text).substr(at, end - at)));
    }
    return widest;
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
        const std::string lines = wrapped(words, width_.words);
        text_ += lines + "\n" + std::string(widest_line(lines), line[level - 1]) + "\n";
    }
}

void Page::paragraph(const std::string& words) {
    part();
    text_ += (is_markdown_ ? escaped(words) : wrapped(words, width_.words)) + "\n";
}

void Page::formula(const std::vector<std::string>& lines) {
    part();
    if (is_markdown_) text_ += "```text\n";
    for (const std::string& line : lines)
        text_ += is_markdown_ ? line + "\n" : folded(line, width_.numbers);
    if (is_markdown_) text_ += "```\n";
}

bool Page::fits(const io::Cells& cells) const {
    return is_markdown_ || widest_line(io::align_columns(indented(cells))) <= width_.numbers;
}

void Page::table(const io::Cells& cells) {
    part();
    if (!is_markdown_) {
        text_ += io::align_columns(indented(cells));
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
