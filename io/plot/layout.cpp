// The layout of a picture.
#include <algorithm>
#include <cmath>

#include "io/plot/picture.hpp"
#include "io/text/text.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

/// Cells with numbers are larger, in sizes of the labels' font.
constexpr double largest_cell = 2, largest_numbered_cell = 4;
constexpr std::size_t max_with_numbers = 12;  // rows and columns

int to_int(std::size_t value) {
    return static_cast<int>(value);
}
int rounded_up(double pixels) {
    return static_cast<int>(std::ceil(pixels));
}

struct Grid {
    std::size_t across = 1, lines = 1;
    int cell_width = 1, cell_height = 1;
};

/// The most pixels per cell.
int largest_cell_of(std::size_t rows, std::size_t columns, const PictureStyle& style) {
    const bool is_small = std::max(rows, columns) <= max_with_numbers;
    return static_cast<int>(style.text * (is_small ? largest_numbered_cell : largest_cell));
}

/// One line, or as many as make the cells much larger; each group of panels starts a line.
Grid grid_of(std::size_t group, std::size_t panels, std::size_t rows, std::size_t columns,
             const PictureStyle& style) {
    group = std::max<std::size_t>(group, 1);
    const std::size_t groups = std::max<std::size_t>((panels + group - 1) / group, 1);
    const int most = largest_cell_of(rows, columns, style);
    const auto cell = [&](int space, std::size_t cells) {
        return std::min<double>(most, space / std::max(static_cast<double>(cells), 1.0));
    };
    Grid best;
    double best_size = 0;
    for (std::size_t folds = 1; folds <= group; ++folds) {
        const std::size_t across = (group + folds - 1) / folds;
        const std::size_t lines = groups * ((group + across - 1) / across);
        const double wide = cell(style.room_wide, across * columns);
        const double high = cell(style.room_high, lines * rows);
        constexpr double gain = 1.45;
        if (std::min(wide, high) <= gain * best_size) continue;
        best = {across, lines, std::max(static_cast<int>(wide), 1),
                std::max(static_cast<int>(high), 1)};
        best_size = std::min(wide, high);
    }
    return best;
}

/// Square, except in long matrices: high or wide enough for a label per cell.
void set_cells(Layout& layout, const HeatMap& map, const Grid& grid) {
    layout.across = grid.across;
    layout.lines = grid.lines;
    constexpr std::size_t is_long = 4;
    const bool stretches =
        std::max(map.rows, map.columns) > is_long * std::min(map.rows, map.columns);
    const int square = std::min(grid.cell_width, grid.cell_height);
    const int side = stretches ? std::max(square, layout.style.line() + 1) : square;
    layout.cell_width = std::min(grid.cell_width, side);
    layout.cell_height = std::min(grid.cell_height, side);
    constexpr int parts_of_text = 12;
    // Between smaller cells gaps are distracting.
    if (std::min(layout.cell_width, layout.cell_height) >= layout.style.line())
        layout.gap = std::max(1, layout.style.text / parts_of_text);
}

/// 1, 2, 5, 10, 20, ...: the smallest number of cells that take `need` pixels together.
std::size_t label_step(int cell, int need) {
    std::size_t decade = 1;
    for (;; decade *= 10)
        for (std::size_t step : {decade, 2 * decade, 5 * decade})
            if (to_int(step) * cell >= need) return step;
}

/// In pixels: the widest of the labels of which one in `every` is shown.
int widest(const std::vector<std::string>& labels, std::size_t every, int size) {
    double width = 0;
    for (std::size_t i = 0; i < labels.size(); i += every)
        width = std::max(width, text_width(short_label(labels[i]), size));
    return rounded_up(width);
}

/// The rotation of the labels below the columns, and how many of them are shown.
void set_column_labels(Layout& layout, const HeatMap& map) {
    const int text = layout.style.text;
    const int need = widest(map.column_labels, 1, text) + text / 2;
    const double line_across = std::sqrt(2.0) * layout.style.line();
    if (map.tokens_on_columns && need > layout.cell_width)
        layout.turn = layout.cell_width >= line_across ? Turn::slanted : Turn::upright;
    layout.column_every =
        label_step(layout.cell_width, layout.turn == Turn::none ? need : layout.style.line());
    const int wide = widest(map.column_labels, layout.column_every, text);
    const int below = label_gap(layout.style);
    layout.labels_height =
        below + (layout.turn == Turn::none      ? layout.style.line()
                 : layout.turn == Turn::upright ? wide
                                                : rounded_up(std::sqrt(0.5) * (wide + text)));
}

/// The largest font that leaves space around every number, with the 0 before the point if it fits.
void set_numbers(Layout& layout, const HeatMap& map) {
    if (std::max(map.rows, map.columns) > max_with_numbers) return;
    const int space = layout.cell_width - layout.gap - layout.style.text / 3;
    for (bool is_short : {false, true}) {
        double width = 0;  // at a font of one pixel
        for (std::size_t panel = 0; panel < map.panels.size(); ++panel)
            for (std::size_t row = 0; row < map.rows; ++row)
                for (std::size_t column = 0; column < map.columns; ++column)
                    if (!map.is_masked(panel, row, column))
                        width = std::max(
                            width,
                            text_width(cell_text(map, map.value(panel, row, column), is_short), 1));
        constexpr double least = 0.7;
        const int size =
            std::min(layout.style.text, static_cast<int>(space / std::max(width, 1.0)));
        if (size < least * layout.style.text || size > layout.cell_height - layout.gap) continue;
        layout.number_size = size;
        layout.short_numbers = is_short;
        return;
    }
}

/// Lines of words up to this width; longer single words keep a line.
std::vector<std::string> broken_into_lines(const std::string& text, double size, double width) {
    std::vector<std::string> lines;
    for (const std::string_view part : split_text(text, ' ')) {
        const std::string word(part);
        if (word.empty()) continue;
        if (!lines.empty() && text_width(lines.back() + " " + word, size) <= width)
            lines.back() += " " + word;
        else
            lines.push_back(word);
    }
    return lines;
}

double widest_line(const std::vector<std::string>& lines, double size) {
    double width = 0;
    for (const std::string& line : lines) width = std::max(width, text_width(line, size));
    return width;
}

}  // namespace

Box Layout::panel_box(const HeatMap& map, std::size_t panel) const {
    const std::size_t group = std::max<std::size_t>(map.panel_columns(), 1);
    const std::size_t lines_of_group = (group + across - 1) / across;
    const std::size_t line = panel / group * lines_of_group + panel % group / across;
    const std::size_t column = panel % group % across;
    return {left + to_int(column) * pitch_x, top + to_int(line) * pitch_y,
            to_int(map.columns) * cell_width, to_int(map.rows) * cell_height};
}

Layout layout_of(const HeatMap& map, const PictureStyle& style) {
    Layout layout;
    layout.style = style;
    set_cells(layout, map,
              grid_of(map.panel_columns(), map.panels.size(), map.rows, map.columns, style));
    // Every word, but only as many indices as are easy to read.
    layout.row_every =
        label_step(layout.cell_height, map.tokens_on_rows ? style.line() : 2 * style.line());
    set_column_labels(layout, map);
    set_numbers(layout, map);

    const int text = style.text, line = style.line(), margin = text;
    const int panel_width = to_int(map.columns) * layout.cell_width;
    const int panel_height = to_int(map.rows) * layout.cell_height;
    double panel_title = 0;
    layout.has_headings = map.is_table() && layout.across == map.panel_columns();
    for (std::size_t panel = 0; panel < map.panels.size(); ++panel)
        panel_title = std::max(panel_title, text_width(panel_title_of(map, layout, panel), text));
    layout.pitch_x = std::max(panel_width, rounded_up(panel_title)) + line;
    const int title_height = panel_title == 0 ? 0 : line + text / 4;
    const int apart = layout.has_headings ? 0 : layout.labels_height + title_height;
    layout.pitch_y = panel_height + apart + text / 2;

    // Slanted labels reach to the left of their column.
    const int row_labels = widest(map.row_labels, layout.row_every, text);
    const int headings = layout.has_headings ? line + text : 0;
    layout.left = margin + line + text / 2 + headings + row_labels + label_gap(style);
    if (layout.turn == Turn::slanted) {
        for (std::size_t column = 0; column < map.columns; column += layout.column_every) {
            const double reach =
                std::sqrt(0.5) * (text_width(short_label(map.column_labels[column]), text) + text);
            layout.left = std::max(layout.left, margin + rounded_up(reach) -
                                                    to_int(column) * layout.cell_width -
                                                    layout.cell_width / 2);
        }
    } else if (layout.turn == Turn::none) {
        layout.left = std::max(layout.left,
                               margin + widest(map.column_labels, layout.column_every, text) / 2);
    }
    const int grid_width = to_int(layout.across) * layout.pitch_x - line;
    const int grid_end = layout.left + grid_width;

    constexpr int narrowest = 32;  // in sizes of the font
    const double wide = std::max(grid_width, narrowest * text);
    layout.heading =
        broken_into_lines(label_text(map.heading, widest_title), heading_size(style), wide);
    layout.settings =
        broken_into_lines(label_text(map.title, widest_title), small_size(style), wide);
    layout.words = broken_into_lines(map.scale_words(), small_size(style), wide);
    for (std::string& more : broken_into_lines(map.note, small_size(style), wide))
        layout.words.push_back(std::move(more));

    layout.top = margin + to_int(layout.heading.size()) * line_of(heading_size(style)) +
                 to_int(layout.settings.size()) * line_of(small_size(style)) + text + title_height;
    const int panels_height = to_int(layout.lines) * layout.pitch_y - text / 2 - apart;
    constexpr int lowest_bar = 7, highest_bar = 18;
    layout.bar = {grid_end + text, layout.top, text,
                  std::clamp(panels_height, lowest_bar * text, highest_bar * text)};
    double ticks = 0;
    for (const ScaleTick& tick : map.ticks())
        ticks = std::max(ticks, text_width(tick.text, small_size(style)));
    const int bar_end = layout.bar.x + layout.bar.width + label_gap(style) + rounded_up(ticks);

    layout.foot = std::max(layout.top + panels_height + layout.labels_height + text / 2 + line,
                           layout.bar.y + layout.bar.height) +
                  text;
    const int swatches = rounded_up(swatches_width(map, style));
    layout.width =
        rounded_up(std::max({static_cast<double>(bar_end),
                             layout.left + widest_line(layout.heading, heading_size(style)),
                             layout.left + widest_line(layout.settings, small_size(style)),
                             layout.left + widest_line(layout.words, small_size(style)),
                             static_cast<double>(layout.left + swatches)})) +
        margin;
    layout.height =
        layout.foot +
        (to_int(layout.words.size()) + (swatches == 0 ? 0 : 1)) * line_of(small_size(style)) +
        margin;
    return layout;
}

Stack::Stack(const std::vector<HeatMap>& maps, Layout (*layout)(const HeatMap&)) {
    for (const HeatMap& map : maps) {
        layouts.push_back(layout(map));
        width = std::max(width, layouts.back().width);
        height += layouts.back().height;
    }
    height = std::max(height, 1);
}

HeatMapLimits picture_limits(const NamedArray& array) {
    constexpr std::size_t largest = 4096, min_cells = 16;
    const std::vector<std::size_t> shape = shape_of(array);
    HeatMapLimits limits;
    if (shape.size() < 3) return limits;
    const std::size_t rank = shape.size(), group = shape[rank - 3];
    std::size_t panels = group;
    for (std::size_t axis = 0; axis + 3 < rank; ++axis) panels *= shape[axis];
    const Grid grid = grid_of(group, panels, std::min(shape[rank - 2], limits.rows),
                              std::min(shape[rank - 1], limits.columns), {12, 1200, 900});
    const auto at_most = [&](std::size_t cells, std::size_t pictures) {
        return std::min(cells, std::max(largest / pictures, min_cells));
    };
    return {at_most(limits.rows, grid.lines), at_most(limits.columns, grid.across)};
}

}  // namespace attn::io
