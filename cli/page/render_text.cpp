// Plain text, and its tables.
#include <cctype>
#include <cmath>
#include <numeric>

#include "cli/page/page.hpp"

namespace attn::cli {
namespace {

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

/// A line of numbers in lines of at most `most` columns; those after the first are indented
/// further.
std::string folded(std::string_view line, std::size_t most, std::size_t indent = 4) {
    constexpr std::size_t further = 4;
    std::string text;
    for (std::size_t lead = indent;; lead = indent + further) {
        const std::size_t end = find_end(line, most > lead ? most - lead : 0);
        text += std::string(lead, ' ') += line.substr(0, end);
        text += '\n';
        if (end == std::string_view::npos) return text;
        line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
    }
}

/// The columns of the widest line.
std::size_t columns_of(std::string_view text) {
    return io::widest_of(io::lines_of(text));
}

using Lines = std::vector<std::string>;
using Widths = std::vector<std::size_t>;

constexpr std::size_t between_columns = 2, number_indent = 4;

std::string without_end(std::string_view line) {
    return std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + '\n';
}

/// Cells wrapped to the widths of their columns, side by side. With `has_vectors`, the last column
/// holds vectors, and the columns between it and the first are aligned right.
std::string row_text(const Lines& row, const Widths& widths, bool has_vectors = false) {
    io::Cells cells;
    std::size_t height = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
        const std::string wrapped = io::wrapped(row[c], widths[c], has_vectors ? 1 : 0);
        const auto lines = io::lines_of(wrapped);
        cells.emplace_back(lines.begin(), lines.end());
        height = std::max(height, cells.back().size());
    }
    std::string out;
    for (std::size_t i = 0; i < height; ++i) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            const std::string text = i < cells[c].size() ? cells[c][i] : "";
            const std::string space(widths[c] - std::min(widths[c], io::display_width(text)), ' ');
            const bool is_right = has_vectors && c != 0 && c + 1 != row.size();
            line += (is_right ? space + text : text + space) + std::string(between_columns, ' ');
        }
        out += without_end(line);
    }
    return out;
}

/// Each column has its longest word at least. What is left is shared equally among the columns that
/// are not as wide as their widest cell. Empty if the longest words do not fit side by side.
Widths widths_of(const io::Cells& rows, std::size_t columns) {
    const std::size_t count = rows[0].size();
    Widths widths(count, 0), lacks(count, 0), order(count);
    for (const Lines& row : rows)
        for (std::size_t c = 0; c < count; ++c) {
            widths[c] = std::max(widths[c], io::widest_of(io::split_text(row[c], ' ')));
            lacks[c] = std::max(lacks[c], io::display_width(row[c]));
        }
    for (std::size_t c = 0; c < count; ++c) lacks[c] -= widths[c];
    const std::size_t used =
        std::accumulate(widths.begin(), widths.end(), between_columns * (count - 1));
    if (used > columns) return {};
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t column) { return lacks[column]; });
    std::size_t left = columns - used;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t more = std::min(lacks[order[i]], left / (count - i));
        widths[order[i]] += more;
        left -= more;
    }
    return widths;
}

/// For each row "- first cell", and below it "header: cell" for the others.
std::string list_of_rows(const io::Cells& rows, std::size_t columns) {
    std::string out;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        if (r != 1) out += '\n';
        for (std::size_t c = 0; c < rows[r].size(); ++c) {
            const std::string name = c == 0 || rows[0][c].empty() ? "" : rows[0][c] + ": ";
            out += (c == 0 ? "- " : "  ") + io::wrapped(name + rows[r][c], columns, 2, 2) + '\n';
        }
    }
    return out;
}

std::string word_table(const io::Cells& rows, std::size_t columns) {
    const Widths widths = widths_of(rows, columns);
    if (widths.empty()) return list_of_rows(rows, columns);
    std::string out = row_text(rows[0], widths), rule;
    for (const std::size_t column : widths)
        rule += std::string(column, '-') + std::string(between_columns, ' ');
    out += without_end(rule);
    bool was_high = false;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        const std::string row = row_text(rows[r], widths);
        const bool is_high = std::ranges::count(row, '\n') > 2;
        if (r > 1 && (is_high || was_high)) out += '\n';
        out += row;
        was_high = is_high;
    }
    return out;
}

/// Column 0 and the columns from `first` up to, not including, `end`, aligned right.
std::string aligned(const io::Cells& cells, std::size_t first, std::size_t end) {
    io::Cells part;
    part.reserve(cells.size());
    for (const Lines& row : cells) {
        part.push_back({std::string(number_indent, ' ') + row[0]});
        for (std::size_t i = first; i < end; ++i) part.back().push_back(row[i]);
    }
    return io::align_columns(part);
}

std::string aligned(const io::Cells& cells) {
    return aligned(cells, 1, cells[0].size());
}

/// The table with vectors wrapped in its last column; empty if that column does not fit.
std::string folded_column(const io::Cells& cells, std::size_t most) {
    constexpr std::size_t least = 18;
    const std::size_t last = cells[0].size() - 1;
    const std::size_t used = columns_of(aligned(cells, 1, last)) + between_columns;
    if (used + least > most) return "";
    Widths widths(last + 1, 0);
    for (const Lines& row : cells)
        for (std::size_t c = 0; c < last; ++c)
            widths[c] = std::max(widths[c], io::display_width(row[c]));
    widths[last] = most - used;
    std::string text;
    for (const Lines& row : cells) {
        const std::string lines = row_text(row, widths, true);
        for (const std::string_view line : io::lines_of(lines))
            (text.append(number_indent, ' ') += line) += '\n';
    }
    return columns_of(text) > most ? "" : text;
}

/// As many columns as fit, and below them column 0 again with the next ones; empty if not even one
/// fits.
std::string split_columns(const io::Cells& cells, std::size_t most) {
    std::string text;
    for (std::size_t first = 1, end = 1; first < cells[0].size(); first = end) {
        std::string fitting;
        for (end = first; end < cells[0].size(); ++end) {
            std::string more = aligned(cells, first, end + 1);
            if (columns_of(more) > most) break;
            fitting = std::move(more);
        }
        if (end == first) return "";
        text += (text.empty() ? "" : "\n") + fitting;
    }
    return text;
}

/// Each row separately: its first cell, and below it the others with their headers.
std::string records(const PageTable& table, const io::Cells& cells, std::size_t most) {
    std::string text;
    for (std::size_t row = table.headers; row < cells.size(); ++row) {
        text += folded(cells[row][0], most, number_indent);
        for (std::size_t i = 1; i < cells[row].size(); ++i) {
            std::string name;
            for (std::size_t header = 0; header < table.headers; ++header)
                name += (name.empty() ? "" : " ") + cells[header][i];
            text += folded(name + ": " + cells[row][i], most, 2 * number_indent);
        }
    }
    return text;
}

/// The lines of a table followed by its bars, if they fit.
std::string with_bars(const std::string& lines, const PageTable& table, std::size_t most) {
    constexpr std::size_t least = 5, widest_bar = 20;
    const std::size_t used = columns_of(lines) + between_columns;
    if (table.bars.empty() || used + least > most) return lines;
    std::string text;
    std::size_t row = 0;
    for (const std::string_view line : io::lines_of(lines)) {
        std::string bar;
        if (row >= table.headers)
            bar = bar_text(table.bars[row - table.headers], std::min(most - used, widest_bar));
        else if (row == 0 && used + table.bar_header.size() <= most)
            bar = table.bar_header;
        text += line;
        text += (bar.empty() ? "" : std::string(between_columns, ' ') + bar) + '\n';
        ++row;
    }
    return text;
}

io::Cells bare_cells(const PageTable& table) {
    io::Cells cells = table.cells;
    for (Lines& row : cells)
        for (std::string& cell : row) cell = bare(cell);
    return cells;
}

/// The table in lines of at most `most` columns. One of words that is too wide becomes a list.
std::string table_text(const PageTable& table, std::size_t most) {
    const io::Cells cells = bare_cells(table);
    if (table.wraps) return word_table(cells, most);
    const std::string lines = aligned(cells);
    if (columns_of(lines) <= most) return with_bars(lines, table, most);
    std::string text;
    if (table.may_fold) text = folded_column(cells, most);
    if (table.may_split) text = split_columns(cells, most);
    return text.empty() ? records(table, cells, most) : text;
}

std::string heading_text(const Block& heading, std::size_t most) {
    constexpr std::string_view underlines = "=-.";
    const std::string lines = io::wrapped(bare(heading.text), most);
    return lines + '\n' + std::string(columns_of(lines), underlines[heading.level - 1]) + '\n';
}

std::string code_text(const Block& code, std::size_t most) {
    std::string text;
    for (const std::string& line : code.lines)
        text += line.empty() ? "\n" : folded(line, code.may_fold ? most : std::string::npos);
    return text;
}

std::string in_text(const Block& block, const PageWidth& width) {
    const std::size_t indent = block.mark.size() + 1;
    switch (block.kind) {
        case Block::Kind::heading: return heading_text(block, width.words);
        case Block::Kind::paragraph: return io::wrapped(bare(block.text), width.words) + '\n';
        case Block::Kind::item:
            return block.mark + ' ' + io::wrapped(bare(block.text), width.words, indent, indent) +
                   '\n';
        case Block::Kind::code: return code_text(block, width.numbers);
        case Block::Kind::table: return table_text(block.table, width.numbers);
        case Block::Kind::picture: break;
    }
    return "";
}

}  // namespace

bool fits(const PageTable& table, std::size_t most) {
    return most == std::string::npos || columns_of(aligned(bare_cells(table))) <= most;
}

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

bool begins_part(std::span<const Block> blocks, std::size_t index) {
    const auto is_item = [&](std::size_t i) { return blocks[i].kind == Block::Kind::item; };
    return index != 0 && !(is_item(index) && is_item(index - 1));
}

std::string render_text(std::span<const Block> blocks, const PageWidth& width) {
    std::string page;
    for (std::size_t i = 0; i < blocks.size(); ++i)
        page += (begins_part(blocks, i) ? "\n" : "") + in_text(blocks[i], width);
    return page;
}

}  // namespace attn::cli
