#include "cli/help/text_page.hpp"

#include <algorithm>
#include <vector>

#include "cli/help/markdown.hpp"
#include "io/text/display_width.hpp"
#include "io/text/wrap.hpp"

namespace attn::cli {
namespace {

using Lines = std::vector<std::string>;
using io::display_width;

/// Longer lines are hard to read.
constexpr std::size_t widest_text = 100;
constexpr std::size_t between_columns = 2;

/// The number of bytes of `text` that fit into this many columns: at least one character.
std::size_t fitting(std::string_view text, std::size_t columns) {
    const auto next = [&](std::size_t at) {
        for (++at; at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;) ++at;
        return at;
    };
    std::size_t end = next(0);
    while (end < text.size() && display_width(text.substr(0, next(end))) <= columns)
        end = next(end);
    return end;
}

/// Words in lines; one that is wider than a line is broken.
Lines lines_of(const std::string& text, std::size_t columns) {
    Lines lines;
    const std::string wrapped = io::wrapped(text, columns);
    for (std::string_view rest = wrapped; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        while (display_width(line) > columns) {
            const std::size_t part = fitting(line, columns);
            lines.emplace_back(line.substr(0, part));
            line.remove_prefix(part);
        }
        lines.emplace_back(line);
    }
    return lines;
}

/// The first line follows `start`, the others are below its end.
std::string behind(const std::string& start, const std::string& text, std::size_t columns) {
    const std::size_t indent = display_width(start);
    std::string out;
    for (const std::string& line : lines_of(text, columns - std::min(indent, columns - 1)))
        out += (out.empty() ? start : std::string(indent, ' ')) + line + '\n';
    return out.empty() ? start + '\n' : out;
}

std::size_t longest_word(std::string_view text) {
    std::size_t longest = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        longest = std::max(longest, display_width(text.substr(at, end - at)));
        at = end + 1;
    }
    return longest;
}

/// A table of plain texts, each row as long as the first.
using Cells = std::vector<Lines>;

/// Widths of the columns that minimise the height of the table; empty if the longest words do not
/// fit side by side.
std::vector<std::size_t> widths_of(const Cells& rows, std::size_t columns) {
    const std::size_t count = rows[0].size();
    std::vector<std::size_t> widths(count, 0), most(count, 0);
    for (const Lines& row : rows)
        for (std::size_t c = 0; c < count; ++c) {
            widths[c] = std::max(widths[c], longest_word(row[c]));
            most[c] = std::max(most[c], display_width(row[c]));
        }
    std::size_t used = between_columns * (count - 1);
    for (const std::size_t width : widths) used += width;
    if (used > columns) return {};
    const auto height = [&] {
        std::size_t sum = 0;
        for (const Lines& row : rows) {
            std::size_t highest = 0;
            for (std::size_t c = 0; c < count; ++c)
                highest = std::max(highest, lines_of(row[c], widths[c]).size());
            sum += highest;
        }
        return sum;
    };
    // Remaining columns go where they save the most lines.
    for (std::size_t left = columns - used; left > 0;) {
        const std::size_t now = height();
        std::size_t best = count, best_step = 0;
        double best_gain = 0;
        for (std::size_t c = 0; c < count; ++c)
            for (std::size_t step = 1; step <= left && widths[c] + step <= most[c]; ++step) {
                widths[c] += step;
                const double gain =
                    static_cast<double>(now - std::min(now, height())) / static_cast<double>(step);
                widths[c] -= step;
                if (gain > best_gain) best = c, best_step = step, best_gain = gain;
            }
        if (best == count) break;
        widths[best] += best_step;
        left -= best_step;
    }
    return widths;
}

std::string without_end(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line + '\n';
}

std::string row_text(const Lines& row, const std::vector<std::size_t>& widths) {
    Cells cells;
    std::size_t height = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
        cells.push_back(lines_of(row[c], widths[c]));
        height = std::max(height, cells.back().size());
    }
    std::string out;
    for (std::size_t i = 0; i < height; ++i) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            const std::string text = i < cells[c].size() ? cells[c][i] : "";
            line += text + std::string(widths[c] + between_columns - display_width(text), ' ');
        }
        out += without_end(line);
    }
    return out;
}

/// For each row "- first cell", and below it "header: cell" for the others.
std::string list_text(const Cells& rows, std::size_t columns) {
    std::string out;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        out += (r == 1 ? "" : "\n") + behind("- ", rows[r][0], columns);
        for (std::size_t c = 1; c < rows[r].size(); ++c) {
            const std::string& header = rows[0][c];
            out += behind("  ", (header.empty() ? "" : header + ": ") + rows[r][c], columns);
        }
    }
    return out;
}

std::string table_text(const Block& table, std::size_t columns) {
    Cells rows;
    for (const Lines& row : table.rows) {
        rows.emplace_back();
        for (const std::string& cell : row) rows.back().push_back(plain(cell));
        rows.back().resize(table.rows[0].size());
    }
    const std::vector<std::size_t> widths = widths_of(rows, columns);
    if (widths.empty()) return list_text(rows, columns);
    std::string out = row_text(rows[0], widths), rule;
    for (const std::size_t width : widths)
        rule += std::string(width, '-') + std::string(between_columns, ' ');
    out += without_end(rule);
    bool was_high = false;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        const std::string row = row_text(rows[r], widths);
        const bool is_high = std::count(row.begin(), row.end(), '\n') > 2;
        if (r > 1 && (is_high || was_high)) out += '\n';
        out += row;
        was_high = is_high;
    }
    return out;
}

std::string code_text(std::string_view code) {
    std::string out;
    while (!code.empty()) {
        const std::size_t end = code.find('\n') + 1;
        out += without_end("    " + std::string(code.substr(0, end - 1)));
        code.remove_prefix(end);
    }
    return out;
}

std::string heading_text(const Block& heading, std::size_t columns) {
    const std::string text = behind("", plain(heading.text), columns);
    const std::size_t width = std::min(columns, display_width(plain(heading.text)));
    return heading.level > 2 ? text
                             : text + std::string(width, heading.level == 1 ? '=' : '-') + '\n';
}

}  // namespace

std::string text_page(std::string_view markdown, std::size_t columns) {
    columns = std::max<std::size_t>(columns, 20);
    const std::size_t narrow = std::min(columns, widest_text);
    std::string page;
    const Block* before = nullptr;
    const std::vector<Block> blocks = blocks_of(markdown);
    for (const Block& block : blocks) {
        const bool is_item = block.kind == Block::Kind::item;
        const bool goes_on = is_item && before != nullptr && before->kind == Block::Kind::item;
        if (before != nullptr && !goes_on) page += '\n';
        switch (block.kind) {
            case Block::Kind::heading: page += heading_text(block, narrow); break;
            case Block::Kind::paragraph: page += behind("", plain(block.text), narrow); break;
            case Block::Kind::item:
                page += behind(block.mark + ' ', plain(block.text), narrow);
                break;
            case Block::Kind::table: page += table_text(block, columns); break;
            case Block::Kind::code: page += code_text(block.text); break;
        }
        before = &block;
    }
    return page;
}

}  // namespace attn::cli
