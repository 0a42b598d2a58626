// Heat maps as text for terminals; see terminal.hpp.
#include "io/plot/terminal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file/screen.hpp"
#include "io/plot/colors.hpp"
#include "io/plot/label_text.hpp"
#include "io/plot/terminal_colors.hpp"
#include "io/text/display_width.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

constexpr std::size_t most_numbered = 24;  // tokens whose cells hold a number
constexpr std::size_t widest_terminal_label = 12, widest_cell = 8;
constexpr std::string_view reset = "\033[0m";

/// The label, cut where it takes more than `columns` and padded to exactly so many.
std::string fitted(const std::string& label, std::size_t columns) {
    const std::string shown = columns == 0 ? "" : label_text(label, columns);
    return shown + std::string(columns - std::min(columns, display_width(shown)), ' ');
}

/// Columns that labels beside the map may take.
std::size_t label_room(const Terminal& terminal) {
    return std::clamp<std::size_t>(terminal.columns / 3, 1, widest_terminal_label);
}

/// For a magnitude of 0 to 1.
std::string_view shade_at(double size) {
    constexpr std::array<std::string_view, 5> shades{" ", "░", "▒", "▓", "█"};
    return shades[static_cast<std::size_t>(std::min(4.0, std::ceil(4 * size - 0.5)))];
}

class TerminalWriter {
public:
    TerminalWriter(const HeatMap& map, const Terminal& terminal) : map_(map), terminal_(terminal) {
        for (const std::string& label : map.row_labels)
            label_width_ = std::max(label_width_, display_width(printable(label)));
        label_width_ = std::min(label_width_, label_room(terminal));
        // Numbers are worth shorter labels.
        constexpr std::size_t shortest_label = 4;
        const std::size_t cells = map.columns * least_width() + 1;
        const std::size_t room = terminal.columns - std::min(terminal.columns, cells);
        is_numbered_ = map.rows <= most_numbered && map.columns <= most_numbered &&
                       map.row_step * map.column_step == 1 &&
                       room >= std::min(label_width_, shortest_label);
        if (is_numbered_) label_width_ = std::min(label_width_, room);
    }

    void write(Output& out) {
        out << map_.title << "\n";
        if (!map_.note.empty()) out << map_.note << "\n";
        // As many side by side as there is room for; each batch entry starts a line.
        const std::size_t heads = map_.panel_columns(), width = panel_width();
        const std::size_t fit = (terminal_.columns + gap) / (width + gap);
        const std::size_t across = std::clamp<std::size_t>(fit, 1, heads);
        for (std::size_t first = 0; first < map_.panels.size(); first += heads)
            for (std::size_t head = 0; head < heads; head += across)
                write_beside(out, first + head, std::min(across, heads - head), width);
        write_legend();
        out << taken();
    }

private:
    static constexpr std::size_t gap = 2;  // between panels

    std::size_t panel_width() const {
        std::size_t width = label_width_ + 1 + map_.columns * (is_numbered_ ? cell_width() : 1);
        for (const HeatPanel& panel : map_.panels)
            width = std::max(width, display_width(panel.title));
        return width;
    }

    void write_beside(Output& out, std::size_t first, std::size_t count, std::size_t width) {
        std::vector<std::vector<std::string>> blocks;
        for (std::size_t i = 0; i < count; ++i) blocks.push_back(lines_of_panel(first + i));
        for (std::size_t line = 0; line < blocks[0].size(); ++line) {
            for (std::size_t i = 0; i < count; ++i) {
                const std::string& text = blocks[i][line];
                out << text;
                if (i + 1 == count) continue;
                const std::size_t shown = visible_width(text);
                out << std::string(width + gap - std::min(width, shown), ' ');
            }
            out << "\n";
        }
    }

    /// Columns of a line, the colours in it left out.
    static std::size_t visible_width(const std::string& line) {
        std::string text;
        for (std::size_t at = 0; at < line.size();) {
            const std::size_t code = std::min(line.find('\033', at), line.size());
            text += line.substr(at, code - at);
            at = code == line.size() ? code : line.find('m', code) + 1;
        }
        return display_width(text);
    }

    std::vector<std::string> lines_of_panel(std::size_t panel) {
        if (!map_.panels[panel].title.empty()) out_ << map_.panels[panel].title << "\n";
        if (is_numbered_)
            write_numbered(panel);
        else if (terminal_.depth == ColorDepth::none)
            write_shades(panel);
        else
            write_half_blocks(panel);
        std::vector<std::string> lines;
        std::istringstream text(taken());
        for (std::string line; std::getline(text, line);) lines.push_back(line);
        return lines;
    }

    /// What has been written so far.
    std::string taken() { return std::exchange(out_.text(), std::string()); }

    std::size_t cell_width() const {
        std::size_t widest = 0;
        for (const std::string& label : map_.column_labels)
            widest = std::max(widest, display_width(printable(label)));
        const std::size_t room = terminal_.columns - std::min(terminal_.columns, label_width_ + 1);
        const std::size_t fits = room / std::max<std::size_t>(map_.columns, 1);
        return std::max(least_width(), std::min({fits, widest_cell, widest + 1}));
    }

    /// Two digits, a sign where there may be one, and what parts them.
    std::size_t least_width() const { return map_.is_diverging ? 4 : 3; }

    void write_numbered(std::size_t panel) {
        const std::size_t width = cell_width();
        std::string line(label_width_ + 1, ' ');
        for (const std::string& label : map_.column_labels) line += fitted(label, width - 1) + " ";
        write_line(line);
        for (std::size_t row = 0; row < map_.rows; ++row) {
            out_ << fitted(map_.row_labels[row], label_width_) << " ";
            for (std::size_t column = 0; column < map_.columns; ++column)
                write_cell(panel, row, column, width);
            out_ << (terminal_.depth == ColorDepth::none ? "" : reset) << "\n";
        }
    }

    void write_cell(std::size_t panel, std::size_t row, std::size_t column, std::size_t width) {
        const std::string text = cell_text(panel, row, column);
        const std::size_t left = (width - text.size()) / 2;
        const std::string padded =
            std::string(left, ' ') + text + std::string(width - left - text.size(), ' ');
        if (map_.is_blocked(panel, row, column)) {
            set_colors(blocked_line, blocked_ground);
            for (std::size_t i = 0; i < width; ++i) out_ << "╱";
            return;
        }
        const Color ground = color_of(panel, row, column);
        if (terminal_.depth == ColorDepth::none) {
            // The number between two shades, so that it can be read.
            const std::string_view shade = shade_of(panel, row, column);
            for (std::size_t i = 0; i < width; ++i) {
                const bool inside = i >= left && i < left + text.size();
                if (inside)
                    out_ << std::string_view(&text[i - left], 1);
                else
                    out_ << shade;
            }
            return;
        }
        set_colors(ink_on(ground), ground);
        out_ << padded;
    }

    /// Two digits: hundredths, of 1 or of the largest magnitude of all.
    std::string cell_text(std::size_t panel, std::size_t row, std::size_t column) const {
        const double value = map_.value(panel, row, column);
        if (!std::isfinite(value)) return "??";
        const double unit = map_.is_diverging ? map_.peak : 1;
        if (value == 0 || unit == 0) return "0";
        const double share = std::min(std::abs(value) / unit, 2.0);
        const long hundredths = std::lround(100 * share);
        std::string text = hundredths >= 100 ? "1." : std::to_string(hundredths);
        if (text.size() < 2) text.insert(0, "0");
        if (hundredths > 100) text = "1+";
        return (value < 0 ? "-" : "") + text;
    }

    std::string_view shade_of(std::size_t panel, std::size_t row, std::size_t column) const {
        if (map_.is_blocked(panel, row, column)) return "╱";
        if (!std::isfinite(map_.value(panel, row, column))) return "?";
        return shade_at(std::abs(map_.position(panel, row, column)));
    }

    void write_shades(std::size_t panel) {
        for (std::size_t row = 0; row < map_.rows; ++row) {
            out_ << fitted(map_.row_labels[row], label_width_) << " ";
            for (std::size_t column = 0; column < map_.columns; ++column)
                out_ << shade_of(panel, row, column);
            out_ << "\n";
        }
        write_ticks();
    }

    /// Two rows a line: the upper half of each character is one, its ground the other.
    void write_half_blocks(std::size_t panel) {
        for (std::size_t row = 0; row < map_.rows; row += 2) {
            out_ << fitted(map_.row_labels[row], label_width_) << " ";
            for (std::size_t column = 0; column < map_.columns; ++column) {
                const bool has_lower = row + 1 < map_.rows;
                const bool upper_blocked = map_.is_blocked(panel, row, column);
                const bool lower_blocked = has_lower && map_.is_blocked(panel, row + 1, column);
                if (upper_blocked && (lower_blocked || !has_lower)) {
                    set_colors(blocked_line, blocked_ground);
                    out_ << "╱";
                    continue;
                }
                const Color upper = color_of(panel, row, column);
                if (has_lower)
                    set_colors(upper, color_of(panel, row + 1, column));
                else
                    set_ink(upper);
                out_ << "▀";
            }
            last_ = {};
            out_ << reset << "\n";
        }
        write_ticks();
    }

    /// Labels of columns below a map without room for each.
    void write_ticks() {
        std::string line(label_width_ + 1, ' ');
        std::size_t width = 0;
        constexpr std::size_t apart = 10;
        for (std::size_t column = 0; column < map_.columns; column += apart) {
            line.append(column - width, ' ');
            const std::size_t room = std::min(apart - 1, map_.columns - column);
            line += fitted("^" + map_.column_labels[column], room);
            width = column + room;
        }
        write_line(line);
    }

    /// Without the blanks at its end.
    void write_line(const std::string& line) {
        out_ << std::string_view(line).substr(0, line.find_last_not_of(' ') + 1) << "\n";
    }

    Color color_of(std::size_t panel, std::size_t row, std::size_t column) const {
        if (map_.is_blocked(panel, row, column)) return blocked_ground;
        if (!std::isfinite(map_.value(panel, row, column))) return no_number;
        return color_at(map_.position(panel, row, column), map_.is_diverging);
    }

    void write_legend() {
        const bool plain = terminal_.depth == ColorDepth::none;
        out_ << map_.ticks().front().text << " ";
        constexpr int steps = 20;
        for (int i = 0; i < steps; ++i) {
            const double part = (i + 0.5) / steps;
            if (plain) {
                out_ << shade_at(map_.is_diverging ? std::abs(2 * part - 1) : part);
            } else {
                set_colors({0, 0, 0},
                           color_at(map_.is_diverging ? 2 * part - 1 : part, map_.is_diverging));
                out_ << " ";
            }
        }
        end_colors();
        out_ << " " << map_.ticks().back().text << "   " << map_.scale_words();
        const bool any_blocked = std::any_of(map_.panels.begin(), map_.panels.end(),
                                             [](const HeatPanel& p) { return !p.blocked.empty(); });
        if (any_blocked) {
            out_ << "   ";
            set_colors(blocked_line, blocked_ground);
            out_ << "╱╱";
            end_colors();
            out_ << " blocked";
        }
        if (is_numbered_)
            out_ << "   numbers: hundredths"
                 << (map_.is_diverging ? " of " + map_.peak_text() : std::string());
        out_ << "\n";
    }

    void end_colors() {
        if (terminal_.depth != ColorDepth::none) out_ << reset;
        last_ = {};
    }

    /// Only what changes is written.
    void write_code(const std::string& code) {
        if (terminal_.depth == ColorDepth::none || code == last_) return;
        out_ << "\033[" << code << "m";
        last_ = code;
    }
    void set_colors(const Color& ink, const Color& ground) {
        write_code(color_code(ink, false, terminal_.depth) + ";" +
                   color_code(ground, true, terminal_.depth));
    }
    void set_ink(const Color& ink) { write_code("0;" + color_code(ink, false, terminal_.depth)); }

    TextOutput out_;  // a panel, or the legend
    const HeatMap& map_;
    const Terminal& terminal_;
    std::size_t label_width_ = 1;
    bool is_numbered_ = false;
    std::string last_;  // the colours that are set
};

}  // namespace

Terminal terminal_of(bool is_terminal, std::size_t wide,
                     FunctionRef<const char*(const char*)> variable) {
    const auto text = [&](const char* name) -> std::string_view {
        const char* value = variable(name);
        return value == nullptr ? std::string_view() : std::string_view(value);
    };
    Terminal terminal;
    terminal.columns = screen_columns(text("COLUMNS"), wide);
    const std::string_view force = text("CLICOLOR_FORCE"), kind = text("TERM"),
                           depth = text("COLORTERM");
    const bool forced = !force.empty() && force != "0";
    const bool shows_colors = is_terminal && !kind.empty() && kind != "dumb";
    if (!text("NO_COLOR").empty() || !(forced || shows_colors)) return terminal;
    if (depth == "truecolor" || depth == "24bit")
        terminal.depth = ColorDepth::rgb;
    else if (kind.find("256color") != std::string_view::npos)
        terminal.depth = ColorDepth::ansi256;
    else
        terminal.depth = ColorDepth::ansi16;
    return terminal;
}

HeatMapLimits limits_of(const Terminal& terminal) {
    const std::size_t beside = label_room(terminal) + 1;
    const std::size_t columns = terminal.columns - std::min(terminal.columns - 1, beside);
    // A character is twice as high as it is wide; half blocks are square.
    const bool halves = terminal.depth != ColorDepth::none;
    return {halves ? columns : std::max(most_numbered, columns / 2), columns};
}

void write_terminal(Output& out, const HeatMap& map, const Terminal& terminal) {
    TerminalWriter(map, terminal).write(out);
}

}  // namespace attn::io
