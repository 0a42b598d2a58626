// Heat maps as text for terminals; see terminal.hpp.
#include "io/plot/terminal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "io/display_width.hpp"
#include "io/plot/colors.hpp"
#include "io/plot/label_text.hpp"
#include "io/utf8.hpp"

namespace attn::io {
namespace {

constexpr std::size_t most_numbered = 24;  // tokens whose cells hold a number
constexpr std::size_t widest_label = 12, widest_cell = 8;
constexpr std::string_view reset = "\033[0m";

/// The label, cut where it takes more than `columns` and padded to exactly so many.
std::string fitted(const std::string& label, std::size_t columns) {
    const std::string shown = columns == 0 ? "" : label_text(printable(label), columns);
    return shown + std::string(columns - std::min(columns, display_width(shown)), ' ');
}

/// Columns that labels beside the map may take.
std::size_t label_room(const Terminal& terminal) {
    return std::clamp<std::size_t>(terminal.columns / 3, 1, widest_label);
}

/// xterm's palette: 16 colours, a cube of 6 x 6 x 6, 24 greys.
Color palette_color(std::size_t index) {
    constexpr std::array<Color, 16> basic{{{0, 0, 0},
                                           {205, 0, 0},
                                           {0, 205, 0},
                                           {205, 205, 0},
                                           {0, 0, 238},
                                           {205, 0, 205},
                                           {0, 205, 205},
                                           {229, 229, 229},
                                           {127, 127, 127},
                                           {255, 0, 0},
                                           {0, 255, 0},
                                           {255, 255, 0},
                                           {92, 92, 255},
                                           {255, 0, 255},
                                           {0, 255, 255},
                                           {255, 255, 255}}};
    constexpr std::array<std::uint8_t, 6> levels{0, 95, 135, 175, 215, 255};
    if (index < 16) return basic[index];
    if (index < 232) {
        const std::size_t cube = index - 16;
        return {levels[cube / 36], levels[cube / 6 % 6], levels[cube % 6]};
    }
    const auto grey = static_cast<std::uint8_t>(8 + 10 * (index - 232));
    return {grey, grey, grey};
}

std::size_t nearest_color(const Color& color, std::size_t first, std::size_t end) {
    const auto distance = [&](std::size_t index) {
        const Color other = palette_color(index);
        const int red = color.red - other.red, green = color.green - other.green,
                  blue = color.blue - other.blue;
        return red * red + green * green + blue * blue;
    };
    std::size_t best = first;
    for (std::size_t index = first; index < end; ++index)
        if (distance(index) < distance(best)) best = index;
    return best;
}

class TerminalWriter {
public:
    TerminalWriter(Output& out, const HeatMap& map, const Terminal& terminal)
        : out_(out), map_(map), terminal_(terminal) {
        for (const std::string& label : map.row_labels)
            label_width_ = std::max(label_width_, display_width(label));
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

    void write() {
        out_ << map_.title << "\n";
        if (!map_.note.empty()) out_ << map_.note << "\n";
        for (std::size_t panel = 0; panel < map_.panels.size(); ++panel) {
            if (!map_.panels[panel].title.empty()) out_ << map_.panels[panel].title << "\n";
            if (is_numbered_)
                write_numbered(panel);
            else if (terminal_.depth == ColorDepth::none)
                write_shades(panel);
            else
                write_half_blocks(panel);
        }
        write_legend();
    }

private:
    std::size_t cell_width() const {
        std::size_t widest = 0;
        for (const std::string& label : map_.column_labels)
            widest = std::max(widest, display_width(label));
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
        constexpr std::array<std::string_view, 5> shades{" ", "░", "▒", "▓", "█"};
        if (map_.is_blocked(panel, row, column)) return "╱";
        if (!std::isfinite(map_.value(panel, row, column))) return "?";
        const double size = std::abs(map_.position(panel, row, column));
        return shades[static_cast<std::size_t>(std::min(4.0, std::ceil(4 * size - 0.5)))];
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
        out_ << map_.scale_begin() << " ";
        constexpr int steps = 20;
        for (int i = 0; i < steps; ++i) {
            const double part = (i + 0.5) / steps;
            if (plain) {
                const double size = map_.is_diverging ? std::abs(2 * part - 1) : part;
                constexpr std::array<std::string_view, 5> shades{" ", "░", "▒", "▓", "█"};
                out_ << shades[static_cast<std::size_t>(std::ceil(4 * size - 0.5))];
            } else {
                set_colors({0, 0, 0},
                           color_at(map_.is_diverging ? 2 * part - 1 : part, map_.is_diverging));
                out_ << " ";
            }
        }
        end_colors();
        out_ << " " << map_.scale_end();
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

    std::string color_code(const Color& color, bool ground) const {
        const auto number = [](std::size_t value) { return std::to_string(value); };
        switch (terminal_.depth) {
            case ColorDepth::rgb:
                return (ground ? "48;2;" : "38;2;") + number(color.red) + ";" +
                       number(color.green) + ";" + number(color.blue);
            case ColorDepth::ansi256:
                return (ground ? "48;5;" : "38;5;") + number(nearest_color(color, 16, 256));
            case ColorDepth::ansi16: {
                const std::size_t index = nearest_color(color, 0, 16);
                return number((ground ? 40 : 30) + index % 8 + (index < 8 ? 0 : 60));
            }
            case ColorDepth::none: break;
        }
        return {};
    }

    /// Only what changes is written.
    void write_code(const std::string& code) {
        if (terminal_.depth == ColorDepth::none || code == last_) return;
        out_ << "\033[" << code << "m";
        last_ = code;
    }
    void set_colors(const Color& ink, const Color& ground) {
        write_code(color_code(ink, false) + ";" + color_code(ground, true));
    }
    void set_ink(const Color& ink) { write_code("0;" + color_code(ink, false)); }

    Output& out_;
    const HeatMap& map_;
    const Terminal& terminal_;
    std::size_t label_width_ = 1;
    bool is_numbered_ = false;
    std::string last_;  // the colours that are set
};

}  // namespace

Terminal terminal_of(bool is_terminal, std::size_t wide,
                     const std::function<const char*(const char*)>& variable) {
    const auto text = [&](const char* name) -> std::string_view {
        const char* value = variable(name);
        return value == nullptr ? std::string_view() : std::string_view(value);
    };
    Terminal terminal;
    if (wide != 0) terminal.columns = wide;
    const std::string_view said = text("COLUMNS");
    std::size_t columns = 0;
    const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), columns);
    constexpr std::size_t widest = 10000;
    if (error == std::errc{} && end == said.data() + said.size() && columns > 0)
        terminal.columns = std::min(columns, widest);
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
    TerminalWriter(out, map, terminal).write();
}

}  // namespace attn::io
