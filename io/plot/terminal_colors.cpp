#include <array>
#include <cmath>

#include "io/plot/terminal.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {

namespace {

/// xterm's palette: 16 colours, a cube of 6 x 6 x 6, 24 greys.
Color palette_color(std::size_t index) {
    constexpr std::string_view basic =
        "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
        "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff ";
    constexpr std::array<std::uint8_t, 6> levels{0, 95, 135, 175, 215, 255};
    if (index < 16) return color_of(basic, index);
    if (index < 232) {
        const std::size_t cube = index - 16;
        return {levels[cube / 36], levels[cube / 6 % 6], levels[cube % 6]};
    }
    const auto grey = static_cast<std::uint8_t>(8 + 10 * (index - 232));
    return {grey, grey, grey};
}

/// Some of xterm's first 16: each step is lighter in its palette and most others, without black and
/// white, which are backgrounds.
constexpr std::array<std::size_t, 5> rising{4, 12, 6, 10, 11};
constexpr std::array<std::size_t, 7> blue_to_red{4, 12, 14, 7, 11, 9, 1};

/// Never blank, unlike masked cells.
constexpr std::array<std::string_view, 7> shades{"·", ":", "+", "░", "▒", "▓", "█"};
constexpr std::array<std::string_view, 5> shades_above{"·", "░", "▒", "▓", "█"};
constexpr std::array<std::string_view, 5> shades_below{"·", "-", "=", "#", "@"};

/// Of equal parts from 0 to 1.
template <class T>
const T& part_of(std::span<const T> steps, double share) {
    const double index = std::clamp(share, 0.0, 1.0) * static_cast<double>(steps.size());
    return steps[std::min(static_cast<std::size_t>(index), steps.size() - 1)];
}

/// The first one only for values that round to it.
std::string_view nearest_shade(std::span<const std::string_view> steps, double size) {
    const double index = std::clamp(size, 0.0, 1.0) * static_cast<double>(steps.size() - 1);
    return steps[static_cast<std::size_t>(std::lround(index))];
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

constexpr std::size_t max_numbered = 24;  // the most tokens whose cells show numbers
constexpr std::size_t widest_terminal_label = 12, shortest_label = 4, widest_cell = 8;

/// Columns available for labels next to the map, with a blank after them.
std::size_t label_room(const Terminal& terminal) {
    return std::min<std::size_t>(terminal.columns / 3, widest_terminal_label + 1);
}

/// Columns of each of this many panels side by side.
std::size_t share_of(std::size_t columns, std::size_t panels) {
    return less((columns + panel_gap) / panels, panel_gap);
}

class ViewChoice {
public:
    ViewChoice(const HeatMap& map, const Terminal& terminal)
        : map_(map), terminal_(terminal),
          label_(std::min(widest_of(map.row_labels, printable) + 1, label_room(terminal))),
          title_(widest_title()) {}

    View best() const {
        constexpr std::size_t screen = 40;
        std::vector<View> views;
        if (std::max(map_.rows, map_.columns) <= max_numbered) {
            if (map_.row_step * map_.column_step == 1) add_numbered(views);
            const std::size_t width = label_ + 2 * map_.columns;
            if (width <= terminal_.columns)
                views.push_back(completed({.cell = 2, .label = label_}, width));
        }
        views.push_back(
            completed({.is_halved = terminal_.depth != ColorDepth::none, .label = label_},
                      label_ + map_.columns));
        for (const View& view : views)
            if (view.across == map_.panel_columns() || view.lines <= screen) return view;
        return *std::ranges::min_element(views, {}, &View::lines);
    }

private:
    std::size_t widest_title() const {
        std::size_t widest = 0;
        for (std::size_t head = 0; !map_.panel_axes.empty() && head < map_.panel_columns(); ++head)
            widest = std::max(widest, display_width(map_.column_heading(head)));
        return std::min(widest, terminal_.columns);
    }

    /// As many side by side as leave space for the digits and four columns of each label.
    void add_numbered(std::vector<View>& views) const {
        // Two digits, a sign if there may be one, and a separator.
        const std::size_t least = map_.is_diverging ? 4 : 3;
        const std::size_t most = std::clamp(widest_of(map_.column_labels, printable) + 1, least,
                                            std::max(least, widest_cell));
        for (std::size_t across = std::max<std::size_t>(map_.panel_columns(), 1); across > 0;
             --across) {
            const std::size_t wide = share_of(terminal_.columns, across);
            const std::size_t fewest = map_.columns * least + std::min(label_, shortest_label + 1);
            if (wide < fewest || wide < title_) continue;
            const std::size_t space = wide - map_.columns * least;
            View view{.is_numbered = true, .label = std::min(label_, space)};
            const std::size_t fits = (wide - view.label) / std::max<std::size_t>(map_.columns, 1);
            view.cell = std::clamp(fits, least, most);
            views.push_back(completed(view, view.label + map_.columns * view.cell));
            return;
        }
    }

    View completed(View view, std::size_t width) const {
        const std::size_t heads = std::max<std::size_t>(map_.panel_columns(), 1);
        const std::size_t fit =
            (terminal_.columns + panel_gap) / (std::max(width, title_) + panel_gap);
        view.across = std::clamp<std::size_t>(fit, 1, heads);
        const std::size_t rows = view.is_halved ? (map_.rows + 1) / 2 : map_.rows;
        const std::size_t folds = (heads + view.across - 1) / view.across;
        view.lines = map_.panels.size() / heads * (folds * (rows + 2) + (map_.is_table() ? 1 : 0));
        return view;
    }

    const HeatMap& map_;
    const Terminal& terminal_;
    std::size_t label_, title_;
};

}  // namespace

std::string color_code(const Color& color, bool ground, ColorDepth depth) {
    const auto number = [](std::size_t value) { return std::to_string(value); };
    switch (depth) {
        case ColorDepth::rgb:
            return (ground ? "48;2;" : "38;2;") + number(color.red) + ";" + number(color.green) +
                   ";" + number(color.blue);
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

Color terminal_color(double position, bool is_diverging, ColorDepth depth) {
    if (depth != ColorDepth::ansi16) return color_at(position, is_diverging);
    const std::span<const std::size_t> steps =
        is_diverging ? std::span<const std::size_t>(blue_to_red) : rising;
    return palette_color(part_of(steps, is_diverging ? (position + 1) / 2 : position));
}

std::string_view shade_at(double position, bool is_diverging) {
    if (!is_diverging) return nearest_shade(shades, position);
    return nearest_shade(position < 0 ? shades_below : shades_above, std::abs(position));
}

View view_of(const HeatMap& map, const Terminal& terminal) {
    return ViewChoice(map, terminal).best();
}

HeatMapLimits limits_of(const Terminal& terminal, const NamedArray& array) {
    constexpr std::size_t fewest = 40;  // cells across, if heads are pooled to fit side by side
    const std::vector<std::size_t> shape = shape_of(array);
    const bool has_halves = terminal.depth != ColorDepth::none;
    // A character is twice as high as it is wide; half blocks are square.
    const auto within = [&](std::size_t wide) {
        const std::size_t columns = std::max<std::size_t>(less(wide, label_room(terminal)), 1);
        return HeatMapLimits{has_halves ? columns : std::max(max_numbered, columns / 2), columns};
    };
    const HeatMapLimits alone = within(terminal.columns);
    if (shape.size() < 3) return alone;
    const std::size_t rank = shape.size();
    if (shape[rank - 1] <= alone.columns && shape[rank - 2] <= alone.rows) return alone;
    const std::size_t fit =
        (terminal.columns + panel_gap) / (fewest + label_room(terminal) + panel_gap);
    const std::size_t across =
        std::clamp<std::size_t>(fit, 1, std::max<std::size_t>(shape[rank - 3], 1));
    return within(share_of(terminal.columns, across));
}

}  // namespace attn::io
