#include "io/plot/terminal.hpp"

#include <cmath>
#include <utility>

#include "io/file/screen.hpp"
#include "io/plot/text_line.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

constexpr std::string_view reset = "\033[0m";

/// The label, truncated or padded to exactly `columns`.
std::string fitted(const std::string& label, std::size_t columns) {
    const std::string shown = columns == 0 ? "" : label_text(label, columns);
    return shown + std::string(columns - std::min(columns, display_width(shown)), ' ');
}

class TerminalWriter {
public:
    TerminalWriter(const HeatMap& map, const Terminal& terminal)
        : map_(map), terminal_(terminal), view_(view_of(map, terminal)) {}

    void write(Output& out) {
        write_words(map_.heading);
        out << taken();
        // Each batch entry starts a line.
        const std::size_t heads = std::max<std::size_t>(map_.panel_columns(), 1);
        for (std::size_t first = 0; first < map_.panels.size(); first += heads) {
            if (map_.is_table()) {
                write_line(label_text(map_.row_heading(first / heads), terminal_.columns));
                out << taken();
            }
            for (std::size_t head = 0; head < heads; head += view_.across)
                write_beside(out, first + head, std::min(view_.across, heads - head));
        }
        write_legend();
        if (!map_.note.empty()) write_words(map_.note);
        write_words(map_.title);
        out << taken();
    }

private:
    void write_beside(Output& out, std::size_t first, std::size_t count) {
        std::vector<std::vector<std::string>> blocks;
        blocks.reserve(count);
        for (std::size_t i = 0; i < count; ++i) blocks.push_back(lines_of_panel(first + i));
        std::size_t width = 0;
        for (const std::vector<std::string>& block : blocks)
            for (const std::string& line : block) width = std::max(width, visible_width(line));
        for (std::size_t line = 0; line < blocks[0].size(); ++line) {
            for (std::size_t i = 0; i < count; ++i) {
                const std::string& text = blocks[i][line];
                out << text;
                if (i + 1 < count) out << std::string(width + panel_gap - visible_width(text), ' ');
            }
            out << "\n";
        }
    }

    /// Columns of a line, without its colours.
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
        if (!map_.panel_axes.empty())
            write_line(label_text(map_.column_heading(panel), terminal_.columns));
        if (view_.is_numbered) write_column_labels();
        for (std::size_t row = 0; row < map_.rows; row += view_.is_halved ? 2 : 1) {
            if (view_.label > 0) out_ << fitted(map_.row_labels[row], view_.label - 1) << " ";
            for (std::size_t column = 0; column < map_.columns; ++column)
                if (view_.is_halved)
                    write_halves(panel, row, column);
                else
                    write_cell(panel, row, column);
            end_colors();
            out_ << "\n";
        }
        if (!view_.is_numbered) write_ticks();
        std::vector<std::string> lines;
        const auto text = taken();
        for (const std::string_view line : lines_of(text))
            lines.emplace_back(line.substr(0, line.find_last_not_of(' ') + 1));
        return lines;
    }

    /// The text so far.
    std::string taken() { return std::exchange(out_.text(), std::string()); }

    /// On as many lines as give each label space: every label begins above its column, except the
    /// last ones if the terminal is too narrow.
    void write_column_labels() {
        constexpr std::size_t max_steps = 4;
        const std::size_t widest = widest_of(map_.column_labels, [&](const std::string& label) {
            return label_text(label, max_steps * view_.cell);
        });
        const std::size_t steps = std::min({(widest + view_.cell) / view_.cell, max_steps,
                                            std::max<std::size_t>(map_.columns, 1)});
        const std::size_t share = (terminal_.columns + panel_gap) / view_.across - panel_gap;
        const std::size_t end =
            std::max(map_.columns * view_.cell, share - std::min(view_.label, share));
        for (std::size_t step = 0; step < steps; ++step) {
            std::string line(view_.label, ' ');
            std::size_t at = 0;
            for (std::size_t column = step; column < map_.columns; column += steps) {
                const std::size_t space = std::min(steps * view_.cell - 1, end - std::min(at, end));
                const std::string label =
                    space == 0 ? "" : label_text(map_.column_labels[column], space);
                const std::size_t width = display_width(label);
                const std::size_t begin =
                    std::max(at, std::min(column * view_.cell, end - std::min(width, end)));
                line.append(begin - at, ' ');
                line += label + " ";
                at = begin + width + 1;
            }
            write_line(line);
        }
    }

    void write_cell(std::size_t panel, std::size_t row, std::size_t column) {
        const std::size_t width = view_.cell;
        if (map_.is_masked(panel, row, column)) return write_blank(width);
        const std::string text = view_.is_numbered ? cell_text(panel, row, column) : "";
        if (terminal_.depth == ColorDepth::none) {
            // A bar of shades before the number.
            const std::size_t blanks = view_.is_numbered && width > 3 ? 1 : 0;
            const std::string_view shade = shade_of(panel, row, column);
            for (std::size_t i = text.size() + blanks; i < width; ++i) out_ << shade;
            out_ << text << std::string(blanks, ' ');
            return;
        }
        const Color ground = color_of(panel, row, column);
        const std::size_t left = (width - text.size()) / 2;
        set_colors(ink_on(ground), ground);
        out_ << std::string(left, ' ') << text << std::string(width - left - text.size(), ' ');
    }

    /// A masked cell: the terminal's background.
    void write_blank(std::size_t width) {
        end_colors();
        out_ << std::string(width, ' ');
    }

    /// The unit of which the numbers in cells are hundredths.
    double unit() const {
        double full = map_.full_color(map_.asked);
        if (full == 0) full = map_.full_color(ColorScale::global);
        return map_.is_diverging ? full : std::max(full, 1.0);
    }

    /// Two digits.
    std::string cell_text(std::size_t panel, std::size_t row, std::size_t column) const {
        const double value = map_.value(panel, row, column);
        if (!std::isfinite(value)) return "??";
        if (value == 0) return "0";
        const double share = std::min(std::abs(value) / unit(), 2.0);
        const long hundredths = std::lround(100 * share);
        std::string text = hundredths >= 100 ? "1." : std::to_string(hundredths);
        if (text.size() < 2) text.insert(0, "0");
        if (hundredths > 100) text = "1+";
        return (value < 0 ? "-" : "") + text;
    }

    std::string_view shade_of(std::size_t panel, std::size_t row, std::size_t column) const {
        const double value = map_.value(panel, row, column);
        if (!std::isfinite(value)) return "?";
        if (map_.is_dropped(value)) return "x";
        return shade_at(map_.position(panel, row, column), map_.is_diverging);
    }

    /// Two rows per line: one is the foreground of a half block, the other its background.
    void write_halves(std::size_t panel, std::size_t row, std::size_t column) {
        const bool has_upper = !map_.is_masked(panel, row, column);
        const bool has_lower = row + 1 < map_.rows && !map_.is_masked(panel, row + 1, column);
        if (has_upper && has_lower)
            set_colors(color_of(panel, row, column), color_of(panel, row + 1, column));
        else if (has_upper || has_lower)
            set_ink(color_of(panel, has_upper ? row : row + 1, column));
        else
            return write_blank(1);
        out_ << (has_upper ? "▀" : "▄");
    }

    /// Labels of columns below a map that is too narrow for all.
    void write_ticks() {
        std::string line(view_.label, ' ');
        std::size_t width = 0;
        const std::size_t distance = 10 / view_.cell;
        for (std::size_t column = 0; column < map_.columns; column += distance) {
            const std::size_t at = column * view_.cell;
            const std::size_t space =
                std::min(distance * view_.cell - 1, map_.columns * view_.cell - at);
            const std::string label =
                label_text(map_.column_labels[column], distance * view_.cell - 2);
            const std::size_t wide = display_width(label);
            // The last one is before its mark if nothing fits after it.
            const bool is_before = wide + 1 > space && width + wide < at;
            line.append((is_before ? at - wide : at) - width, ' ');
            line += is_before ? label + "^" : fitted("^" + label, space);
            width = is_before ? at + 1 : at + space;
        }
        write_line(line);
    }

    /// Without the blanks at its end.
    void write_line(const std::string& line) {
        out_ << std::string_view(line).substr(0, line.find_last_not_of(' ') + 1) << "\n";
    }

    /// In as many lines as it takes.
    void write_words(const std::string& words) {
        const bool fits = display_width(words) <= terminal_.columns;
        const std::string text = fits ? words : wrapped(words, terminal_.columns);
        for (const std::string_view line : lines_of(text))
            write_line(label_text(std::string(line), terminal_.columns));
    }

    Color color_of(std::size_t panel, std::size_t row, std::size_t column) const {
        const double value = map_.value(panel, row, column);
        if (!std::isfinite(value)) return no_number;
        if (map_.is_dropped(value)) return dropped_ground;
        return terminal_color(map_.position(panel, row, column), map_.is_diverging,
                              terminal_.depth);
    }

    /// The colour bar, its ticks, and further notes.
    void write_legend() {
        constexpr std::size_t widest_bar = 40;
        const std::size_t wide = std::min(terminal_.columns, widest_bar);
        for (std::size_t i = 0; i < wide; ++i) {
            const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(wide);
            const double position = map_.is_diverging ? 2 * part - 1 : part;
            if (terminal_.depth == ColorDepth::none) {
                out_ << shade_at(position, map_.is_diverging);
            } else {
                set_colors({0, 0, 0}, terminal_color(position, map_.is_diverging, terminal_.depth));
                out_ << " ";
            }
        }
        end_colors();
        out_ << "\n";
        write_line(tick_line(wide));
        std::string words = map_.scale_words();
        if (view_.is_numbered)
            words += "; numbers: hundredths" +
                     (unit() == 1 ? std::string() : " of " + rounded_text(unit()));
        if (map_.has_masked) words += "; blank: masked";
        if (map_.has_dropped)
            words += std::string(terminal_.depth == ColorDepth::none ? "; x: " : "; grey: ") +
                     dropped_words;
        if (map_.has_no_number)
            words +=
                terminal_.depth == ColorDepth::none ? "; ?: no number" : "; magenta: no number";
        write_words(words);
    }

    /// Each label centred at its position, the ends first, others if they do not overlap.
    std::string tick_line(std::size_t wide) const {
        std::vector<ScaleTick> ticks = map_.ticks();
        std::rotate(ticks.begin(), ticks.end() - 1, ticks.end());
        std::string line(wide, ' ');
        for (const ScaleTick& one : ticks) {
            const double share = map_.is_diverging ? (one.position + 1) / 2 : one.position;
            const auto middle =
                static_cast<std::size_t>(std::lround(share * static_cast<double>(wide - 1)));
            const std::size_t size = std::min(one.text.size(), wide);
            const std::size_t at = std::min(less(middle, size / 2), wide - size);
            const std::size_t from = less(at, 1), end = std::min(at + size + 1, wide);
            if (line.find_first_not_of(' ', from) >= end)
                line.replace(at, size, one.text.substr(0, size));
        }
        return line;
    }

    void end_colors() {
        if (terminal_.depth != ColorDepth::none && !last_.empty()) out_ << reset;
        last_ = {};
    }

    /// Writes only what changes.
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
    const View view_;
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

void write_terminal(Output& out, const HeatMap& map, const Terminal& terminal) {
    TerminalWriter(map, terminal).write(out);
}

}  // namespace attn::io
