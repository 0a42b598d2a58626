// Pictures of heat maps; see picture.hpp.
#include "io/plot/picture.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "io/plot/label_text.hpp"
#include "io/text/display_width.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

constexpr std::size_t widest_picture_label = 16, widest_panel_title = 40, widest_title = 120;
constexpr int tick = 4, bar_step = 3, bar_steps = 60;

int to_int(std::size_t value) {
    return static_cast<int>(value);
}

int text_width(const std::string& text, const PictureStyle& style) {
    return to_int(display_width(text)) * style.advance;
}

std::string short_label(const std::string& label) {
    return label_text(label, widest_picture_label);
}

struct Grid {
    std::size_t across = 1, lines = 1;
};

/// As square as makes the cells largest; each group of panels starts a line.
Grid grid_of(std::size_t group, std::size_t panels, std::size_t rows, std::size_t columns) {
    group = std::max<std::size_t>(group, 1);
    const std::size_t groups = std::max<std::size_t>((panels + group - 1) / group, 1);
    Grid best;
    double best_size = 0;
    for (std::size_t folds = 1; folds <= group; ++folds) {
        const std::size_t across = (group + folds - 1) / folds;
        const Grid grid{across, groups * ((group + across - 1) / across)};
        const double size = 1 / std::max(static_cast<double>(grid.across * columns),
                                         static_cast<double>(grid.lines * rows));
        constexpr double gain = 1.01;  // else fewer lines
        if (size <= gain * best_size) continue;
        best = grid;
        best_size = size;
    }
    return best;
}

/// 1, 2, 5, 10, 20, ...: the least count of cells that together take `need` pixels.
std::size_t label_step(int cell, int need) {
    std::size_t decade = 1;
    for (;; decade *= 10)
        for (std::size_t step : {decade, 2 * decade, 5 * decade})
            if (to_int(step) * cell >= need) return step;
}

/// In pixels: the widest of the labels of which one in `every` is shown.
int widest(const std::vector<std::string>& labels, std::size_t every, const PictureStyle& style) {
    int width = 0;
    for (std::size_t i = 0; i < labels.size(); i += every)
        width = std::max(width, text_width(short_label(labels[i]), style));
    return width;
}

bool any_blocked(const HeatMap& map) {
    return std::any_of(map.panels.begin(), map.panels.end(),
                       [](const HeatPanel& panel) { return !panel.blocked.empty(); });
}

bool any_without_number(const HeatMap& map) {
    const auto has_none = [](double value) { return !std::isfinite(value); };
    return std::any_of(map.panels.begin(), map.panels.end(), [&](const HeatPanel& panel) {
        return std::any_of(panel.values.begin(), panel.values.end(), has_none);
    });
}

/// The bar of colours with its ends, and the other colours, from the left at half height y.
/// Without a canvas: only their end.
int draw_legend(Canvas* canvas, const HeatMap& map, const PictureStyle& style, int x, int y) {
    const int high = style.line, top = y - high / 2;
    const auto text = [&](const std::string& words) {
        if (canvas != nullptr) canvas->text(x, y, words, Anchor::start, false);
        x += text_width(words, style);
    };
    text(map.ticks().front().text);
    x += style.advance;
    for (int step = 0; step < bar_steps; ++step) {
        const double part = (step + 0.5) / bar_steps;
        const int wide = bar_step * style.advance / 6;
        if (canvas != nullptr)
            canvas->fill({x, top, wide, high},
                         color_at(map.is_diverging ? 2 * part - 1 : part, map.is_diverging));
        x += wide;
    }
    x += style.advance;
    text(map.ticks().back().text + "   " + map.scale_words());
    const auto swatch = [&](const std::string& words, auto paint) {
        x += 3 * style.advance;
        if (canvas != nullptr) paint(Box{x, top, 2 * high, high});
        x += 2 * high + style.advance;
        text(words);
    };
    if (any_blocked(map)) swatch("blocked", [&](const Box& box) { canvas->hatch(box); });
    if (any_without_number(map))
        swatch("no number", [&](const Box& box) { canvas->fill(box, no_number); });
    return x;
}

void draw_labels(Canvas& canvas, const HeatMap& map, const Layout& layout, const Box& box,
                 bool with_rows) {
    const bool row_ticks = layout.row_every > 1, column_ticks = layout.column_every > 1;
    for (std::size_t row = 0; with_rows && row < map.rows; row += layout.row_every) {
        const int y = box.y + to_int(row) * layout.cell_height + layout.cell_height / 2;
        if (row_ticks) canvas.fill({box.x - 1 - tick, y, tick, 1}, ink);
        canvas.text(box.x - 2 * tick, y, short_label(map.row_labels[row]), Anchor::end, false);
    }
    const int bottom = box.y + box.height;
    for (std::size_t column = 0; column < map.columns; column += layout.column_every) {
        const int x = box.x + to_int(column) * layout.cell_width + layout.cell_width / 2;
        if (column_ticks) canvas.fill({x, bottom + 1, 1, tick}, ink);
        const std::string label = short_label(map.column_labels[column]);
        if (layout.turned)
            canvas.text(x, bottom + 2 * tick, label, Anchor::end, true);
        else
            canvas.text(x, bottom + tick + layout.style.line / 2, label, Anchor::middle, false);
    }
}

}  // namespace

Box Layout::panel_box(const HeatMap& map, std::size_t panel) const {
    const std::size_t group = std::max<std::size_t>(map.panel_columns(), 1);
    const std::size_t lines_of_group = (group + across - 1) / across;
    const std::size_t line = panel / group * lines_of_group + panel % group / across;
    const std::size_t place = panel % group % across;
    return {left + to_int(place) * pitch_x, top + to_int(line) * pitch_y,
            to_int(map.columns) * cell_width, to_int(map.rows) * cell_height};
}

Layout layout_of(const HeatMap& map, const PictureStyle& style) {
    Layout layout;
    layout.style = style;
    const Grid grid = grid_of(map.panel_columns(), map.panels.size(), map.rows, map.columns);
    layout.across = grid.across;
    layout.lines = grid.lines;
    const auto cell = [&](std::size_t count) {
        return std::clamp(style.room / std::max(to_int(count), 1), 1, style.largest_cell);
    };
    layout.cell_width = cell(grid.across * map.columns);
    layout.cell_height = cell(grid.lines * map.rows);
    // Square, but in long matrices high or wide enough for a label at each cell.
    constexpr std::size_t is_long = 4;
    const bool stretches =
        std::max(map.rows, map.columns) > is_long * std::min(map.rows, map.columns);
    const int square = std::min(layout.cell_width, layout.cell_height);
    const int side = stretches ? std::max(square, style.line + 1) : square;
    layout.cell_width = std::min(layout.cell_width, side);
    layout.cell_height = std::min(layout.cell_height, side);

    layout.row_every = label_step(layout.cell_height, style.line);
    const int row_labels = widest(map.row_labels, layout.row_every, style);
    const int widest_column = widest(map.column_labels, 1, style) + style.advance;
    layout.turned = map.tokens_on_columns && widest_column > layout.cell_width;
    layout.column_every = label_step(layout.cell_width, layout.turned ? style.line : widest_column);
    const int column_labels = widest(map.column_labels, layout.column_every, style);
    layout.labels_height = layout.turned ? column_labels + 2 * tick : style.line + tick;
    const int apart = style.line / 2;

    int panel_title = 0;
    for (const HeatPanel& panel : map.panels)
        panel_title =
            std::max(panel_title, text_width(label_text(panel.title, widest_panel_title), style));
    const int panel_width = to_int(map.columns) * layout.cell_width;
    const int panel_height = to_int(map.rows) * layout.cell_height;
    const int title_height = panel_title == 0 ? 0 : style.line + apart / 2;
    layout.margin = style.line;
    layout.left = layout.margin + style.line + apart + row_labels + 2 * tick;
    layout.top = layout.margin + style.line + apart + title_height;
    layout.pitch_x = std::max(panel_width, panel_title) + style.line;
    layout.pitch_y = panel_height + layout.labels_height + apart + title_height;

    const int grid_end = layout.left + to_int(grid.across) * layout.pitch_x - style.line;
    const int title_end = layout.left + text_width(label_text(map.title, widest_title), style);
    const int note_end = layout.left + text_width(map.note, style);
    const int legend_end = draw_legend(nullptr, map, style, layout.left, 0);
    // A label below the last column may stand out by half its width.
    const int outside =
        layout.turned ? 0
                      : std::max(0, (column_labels - layout.cell_width) / 2 - layout.margin / 2);
    layout.width = std::max({grid_end + outside, title_end, note_end, legend_end}) + layout.margin;
    const int below = 2 * style.line + 2 * apart + (map.note.empty() ? 0 : style.line + apart / 2);
    layout.height =
        layout.top - title_height + to_int(grid.lines) * layout.pitch_y + below + layout.margin;
    return layout;
}

void draw(Canvas& canvas, const HeatMap& map, const Layout& layout, int y) {
    const PictureStyle& style = layout.style;
    const int half = style.line / 2, apart = style.line / 2;
    canvas.text(layout.left, y + layout.margin + half, label_text(map.title, widest_title),
                Anchor::start, false);
    Box grid{layout.left, y + layout.top, 0, 0};
    for (std::size_t panel = 0; panel < map.panels.size(); ++panel) {
        Box box = layout.panel_box(map, panel);
        box.y += y;
        const std::string title = label_text(map.panels[panel].title, widest_panel_title);
        if (!title.empty())
            canvas.text(box.x, box.y - apart / 2 - half, title, Anchor::start, false);
        canvas.fill({box.x - 1, box.y - 1, box.width + 2, box.height + 2}, frame_color);
        canvas.cells(map, panel, box);
        draw_labels(canvas, map, layout, box, box.x == layout.left);
        grid.width = std::max(grid.width, box.x + box.width - grid.x);
        grid.height = std::max(grid.height, box.y + box.height - grid.y);
    }
    canvas.text(layout.margin + half, grid.y + grid.height / 2, map.row_axis, Anchor::middle, true);
    int at = grid.y + grid.height + layout.labels_height + apart / 2 + half;
    canvas.text(grid.x + grid.width / 2, at, map.column_axis, Anchor::middle, false);
    at += style.line + apart + apart / 2;
    draw_legend(&canvas, map, style, layout.left, at);
    if (!map.note.empty())
        canvas.text(layout.left, at + style.line + apart / 2, map.note, Anchor::start, false);
}

Color cell_color(const HeatMap& map, std::size_t panel, std::size_t row, std::size_t column) {
    if (!std::isfinite(map.value(panel, row, column))) return no_number;
    return color_at(map.position(panel, row, column), map.is_diverging);
}

HeatMapLimits picture_limits(const NamedArray& array) {
    constexpr std::size_t largest = 4096, fewest_cells = 16;
    const std::vector<std::size_t> shape = shape_of(array);
    HeatMapLimits limits;
    if (shape.size() < 3) return limits;
    const std::size_t rank = shape.size(), group = shape[rank - 3];
    const std::size_t panels =
        std::accumulate(shape.begin(), shape.end() - 2, std::size_t{1}, std::multiplies<>());
    const Grid grid = grid_of(group, panels, std::min(shape[rank - 2], limits.rows),
                              std::min(shape[rank - 1], limits.columns));
    const auto at_most = [&](std::size_t cells, std::size_t pictures) {
        return std::min(cells, std::max(largest / pictures, fewest_cells));
    };
    return {at_most(limits.rows, grid.lines), at_most(limits.columns, grid.across)};
}

}  // namespace attn::io
