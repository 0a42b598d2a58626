// A page as plain text. Only a single word may be wider than a line.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <string_view>

#include "cli/explain/walk_page.hpp"
#include "io/text/display_width.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t indent = 4;  // of formulas and tables
constexpr std::size_t widest_bar = 20;

/// The first blank where a line may end. A line does not break before a number, which belongs to
/// its name, or before its percent sign. After `most` columns, any blank is allowed.
std::size_t find_break(std::string_view words, std::size_t most) {
    std::size_t at = words.find(' '), width = 0, counted = 0;
    while (at != std::string_view::npos && at + 1 < words.size() && width <= most &&
           (words[at + 1] == '%' || std::isdigit(static_cast<unsigned char>(words[at + 1])) != 0)) {
        width += io::display_width(words.substr(counted, at - counted));
        counted = at;
        at = words.find(' ', at + 1);
    }
    return at;
}

/// Wraps words into lines of at most `most` columns; lines after the first start with `margin`
/// blanks.
std::string wrapped(std::string_view words, std::size_t most, std::size_t margin = 0) {
    std::string text;
    std::size_t column = 0;
    while (!words.empty()) {
        std::size_t blank = find_break(words, most);
        std::size_t width = io::display_width(words.substr(0, blank));
        if (margin + width > most) {  // a name and its number are separated if no line holds both
            blank = words.find(' ');
            width = io::display_width(words.substr(0, blank));
        }
        const bool is_first = column == 0, fits = column + 1 + width <= most;
        if (!is_first) text += fits ? " " : "\n" + std::string(margin, ' ');
        column = is_first ? width : fits ? column + 1 + width : margin + width;
        text += words.substr(0, blank);
        words.remove_prefix(blank == std::string_view::npos ? words.size() : blank + 1);
    }
    return text;
}

/// Whether a line of numbers may end at this blank: after a comma, or before +, = or a bracketed
/// name.
bool may_end(std::string_view line, std::size_t blank) {
    const std::size_t next = line.find_first_not_of(' ', blank);
    if (next == std::string_view::npos || line[blank - 1] == ' ') return false;
    const bool is_name = line[next] == '(' && next + 1 < line.size() &&
                         std::isalpha(static_cast<unsigned char>(line[next + 1])) != 0;
    return line[blank - 1] == ',' || line[next] == '+' || line[next] == '=' || is_name;
}

/// The end of a line of at most `most` columns: the last allowed break, else the last blank, else
/// the first. npos if all of the text fits, or it has no blank. Measures the width incrementally,
/// and reads at most one line.
std::size_t find_end(std::string_view text, std::size_t most) {
    constexpr std::size_t none = std::string_view::npos;
    std::size_t width = 0, counted = 0, last_blank = none, last_end = none;
    for (std::size_t at = text.find(' ');; at = text.find(' ', at + 1)) {
        const std::size_t next = std::min(at, text.size());
        width += io::display_width(text.substr(counted, next - counted));
        counted = next;
        if (width > most) return last_end != none ? last_end : std::min(last_blank, at);
        if (at == none) return none;
        last_blank = at;
        if (at != 0 && may_end(text, at)) last_end = at;
    }
}

/// Wraps a line of numbers; continuation lines are indented further.
std::string folded(std::string_view line, std::size_t most, std::size_t margin = indent) {
    std::string text;
    for (std::size_t lead = margin;; lead = margin + indent) {
        const std::size_t end = find_end(line, most > lead ? most - lead : 0);
        text += std::string(lead, ' ') += line.substr(0, end);
        text += '\n';
        if (end == std::string_view::npos) return text;
        line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
    }
}

std::size_t widest_line(const std::string& text) {
    std::size_t widest = 0;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        widest = std::max(widest, io::display_width(std::string_view(text).substr(at, end - at)));
    }
    return widest;
}

/// Formats column 0 and the columns from `first` up to, not including, `end`.
std::string block(const io::Cells& cells, std::size_t first, std::size_t end) {
    io::Cells part;
    part.reserve(cells.size());
    for (const auto& row : cells) {
        part.push_back({std::string(indent, ' ') + row[0]});
        for (std::size_t i = first; i < end; ++i) part.back().push_back(row[i]);
    }
    return io::align_columns(part);
}

/// "[0.1, 0.2, 0.3]" in lines of at most `most` columns.
std::vector<std::string> vector_lines(std::string_view vector, std::size_t most) {
    std::vector<std::string> lines;
    while (vector.size() > most) {
        const std::size_t blank = vector.substr(0, most + 1).rfind(' ');
        if (blank == 0 || blank == std::string_view::npos) break;
        lines.emplace_back(vector.substr(0, blank));
        vector.remove_prefix(blank);  // the remaining blank aligns with the bracket
    }
    lines.emplace_back(vector);
    return lines;
}

/// The table with its last column wrapped to several lines; empty if that column does not fit.
std::string with_folded_column(const io::Cells& cells, std::size_t most) {
    constexpr std::size_t least = 18, gap = 2;
    const std::size_t last = cells[0].size() - 1, used = widest_line(block(cells, 1, last)) + gap;
    if (used + least > most) return "";
    io::Cells folded;
    folded.reserve(cells.size());
    for (const auto& row : cells) {
        const std::size_t first = folded.size();
        for (const std::string& line : vector_lines(row[last], most - used)) {
            folded.push_back(folded.size() == first ? row : std::vector<std::string>(row.size()));
            folded.back()[last] = line;
        }
    }
    std::size_t widest = 0;
    for (const auto& row : folded) widest = std::max(widest, io::display_width(row[last]));
    for (auto& row : folded)  // left-aligned, unlike numbers
        row[last].append(widest - io::display_width(row[last]), ' ');
    const std::string lines = block(folded, 1, last + 1);
    std::string text;
    for (std::size_t at = 0, end = 0; at < lines.size(); at = end + 1) {
        end = lines.find('\n', at);
        text += lines.substr(at, lines.find_last_not_of(' ', end - 1) + 1 - at) + "\n";
    }
    return widest_line(text) > most ? "" : text;
}

/// Formats each row separately: its first cell, and below it the others with their headers.
std::string records(const PageTable& table, std::size_t most) {
    std::string text;
    for (std::size_t row = table.headers; row < table.cells.size(); ++row) {
        text += folded(table.cells[row][0], most);
        for (std::size_t i = 1; i < table.cells[row].size(); ++i) {
            std::string name;
            for (std::size_t header = 0; header < table.headers; ++header)
                name += (name.empty() ? "" : " ") + table.cells[header][i];
            text += folded(name + ": " + table.cells[row][i], most, 2 * indent);
        }
    }
    return text;
}

class TextPage final : public Page {
public:
    explicit TextPage(const PageWidth& width) : width_(width) {}

    void heading(std::size_t level, const std::string& words) override {
        part();
        const char line[] = {'=', '-', '.'};
        const std::string lines = wrapped(words, width_.words);
        text_ += lines + "\n" + std::string(widest_line(lines), line[level - 1]) + "\n";
    }

    void paragraph(const std::string& words) override {
        part();
        text_ += wrapped(words, width_.words) + "\n";
    }

    void list(const std::vector<std::string>& items) override {
        part();
        for (const std::string& item : items) text_ += wrapped("- " + item, width_.words, 2) + "\n";
    }

    void formula(const std::vector<std::string>& lines) override {
        part();
        for (const std::string& line : lines) text_ += folded(line, width_.numbers);
    }

    bool fits(const PageTable& table) const override {
        return widest_line(block(table.cells, 1, table.cells[0].size())) <= width_.numbers;
    }

    void table(const PageTable& table) override {
        part();
        const std::size_t columns = table.cells[0].size();
        if (fits(table)) {
            text_ += with_bars(block(table.cells, 1, columns), table);
            return;
        }
        std::string text = table.may_fold ? with_folded_column(table.cells, width_.numbers) : "";
        for (std::size_t first = 1, end = 1; table.may_split && first < columns; first = end) {
            std::string fitting;
            for (end = first; end < columns; ++end) {
                std::string more = block(table.cells, first, end + 1);
                if (widest_line(more) > width_.numbers) break;
                fitting = std::move(more);
            }
            if (end == first) {
                text.clear();
                break;
            }
            text += (text.empty() ? "" : "\n") + fitting;
        }
        text_ += text.empty() ? records(table, width_.numbers) : text;
    }

    std::size_t widest_label() const override {
        constexpr std::size_t least = 8, most = 24;
        return std::clamp(std::min(width_.words, width_.numbers) / 4, least, most);
    }

    std::string text() const override { return text_; }

private:
    /// Separates blocks by a blank line.
    void part() {
        if (!text_.empty()) text_ += '\n';
    }

    /// The lines of a table followed by its bars, if they fit.
    std::string with_bars(const std::string& lines, const PageTable& table) const {
        constexpr std::size_t least = 5, gap = 2;
        const std::size_t used = widest_line(lines) + gap;
        if (table.bars.empty() || used + least > width_.numbers) return lines;
        const std::size_t room = std::min(width_.numbers - used, widest_bar);
        std::string text;
        std::size_t row = 0;
        for (std::size_t at = 0, end = 0; at < lines.size(); at = end + 1, ++row) {
            end = lines.find('\n', at);
            text += lines.substr(at, end - at);
            const std::string bar =
                row < table.headers ? "" : bar_text(table.bars[row - table.headers], room);
            const bool is_header = row == 0 && used + table.bar_header.size() <= width_.numbers;
            const std::string behind = is_header ? table.bar_header : bar;
            if (!behind.empty()) text += std::string(gap, ' ') + behind;
            text += '\n';
        }
        return text;
    }

    PageWidth width_;
    std::string text_;
};

}  // namespace

std::string bar_text(double length, std::size_t columns) {
    constexpr std::size_t eighths = 8;
    constexpr const char* parts[eighths] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (!(length > 0)) return "";
    const auto units = static_cast<std::size_t>(
        std::lround(std::min(length, 1.0) * static_cast<double>(columns * eighths)));
    std::string text;
    for (std::size_t i = 0; i < units / eighths; ++i) text += "█";
    return text + parts[units % eighths];
}

std::unique_ptr<Page> make_text_page(const PageWidth& width) {
    return std::make_unique<TextPage>(width);
}

}  // namespace attn::cli
