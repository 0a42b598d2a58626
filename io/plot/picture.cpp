#include "io/plot/picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace attn::io {
namespace {

constexpr std::size_t widest_picture_label = 16, widest_panel_title = 40;

int pixels(std::size_t cells, int size) {
    return static_cast<int>(cells) * size;
}

struct Swatch {
    std::string words;
    Color color;
};

std::vector<Swatch> swatches_of(const HeatMap& map) {
    std::vector<Swatch> swatches;
    if (map.has_masked) swatches.push_back({"masked", masked_ground});
    if (map.has_dropped) swatches.push_back({dropped_words, dropped_ground});
    if (map.has_no_number) swatches.push_back({"no number", no_number});
    return swatches;
}

double width_of(const Swatch& swatch, const PictureStyle& style) {
    return 2.5 * style.text + text_width(swatch.words, small_size(style));
}

/// The colours from high to low, their numbers, and a frame that makes white visible on white.
void draw_bar(Canvas& canvas, const HeatMap& map, const Layout& layout, int y) {
    const Box bar{layout.bar.x, layout.bar.y + y, layout.bar.width, layout.bar.height};
    canvas.fill({bar.x - 1, bar.y - 1, bar.width + 2, bar.height + 2}, frame_color);
    constexpr int max_steps = 120;
    const int steps = std::min(bar.height, max_steps);
    for (int step = 0; step < steps; ++step) {
        const int from = step * bar.height / steps, to = (step + 1) * bar.height / steps;
        const double part = 1 - (step + 0.5) / steps;
        canvas.fill({bar.x, bar.y + from, bar.width, to - from},
                    color_at(map.is_diverging ? 2 * part - 1 : part, map.is_diverging));
    }
    const int mark = label_gap(layout.style) / 2;
    for (const ScaleTick& tick : map.ticks()) {
        const double part = map.is_diverging ? (tick.position + 1) / 2 : tick.position;
        const int at = bar.y + static_cast<int>(std::lround((1 - part) * (bar.height - 1)));
        canvas.fill({bar.x + bar.width + 1, at, mark, 1}, quiet_ink);
        canvas.text(bar.x + bar.width + 2 * mark, at, tick.text, {small_size(layout.style)});
    }
}

void draw_labels(Canvas& canvas, const HeatMap& map, const Layout& layout, const Box& box,
                 bool with_rows, bool with_columns) {
    const PictureStyle& style = layout.style;
    const int gap = label_gap(style), mark = gap / 2;
    if (with_rows) {
        for (std::size_t row = 0; row < map.rows; row += layout.row_every) {
            const int y = box.y + pixels(row, layout.cell_height) + layout.cell_height / 2;
            if (layout.row_every > 1) canvas.fill({box.x - 1 - mark, y, mark, 1}, quiet_ink);
            canvas.text(box.x - gap, y, short_label(map.row_labels[row]),
                        {style.text, Anchor::end});
        }
    }
    const int bottom = box.y + box.height;
    for (std::size_t column = 0; with_columns && column < map.columns;
         column += layout.column_every) {
        const int x = box.x + pixels(column, layout.cell_width) + layout.cell_width / 2;
        if (layout.column_every > 1) canvas.fill({x, bottom + 1, 1, mark}, quiet_ink);
        const std::string label = short_label(map.column_labels[column]);
        const bool is_flat = layout.turn == Turn::none;
        const int shift = layout.turn == Turn::slanted ? style.text / 4 : 0;
        canvas.text(x + shift, bottom + gap + (is_flat ? style.line() / 2 : shift), label,
                    {style.text, is_flat ? Anchor::middle : Anchor::end, ink, layout.turn});
    }
}

void draw_numbers(Canvas& canvas, const HeatMap& map, std::size_t panel, const Layout& layout,
                  const Box& box) {
    const int wide = layout.cell_width, high = layout.cell_height;
    for (std::size_t row = 0; row < map.rows; ++row) {
        for (std::size_t column = 0; column < map.columns; ++column) {
            const double value = map.value(panel, row, column);
            if (map.is_masked(panel, row, column) || !std::isfinite(value)) continue;
            canvas.text(box.x + pixels(column, wide) + (wide - layout.gap) / 2,
                        box.y + pixels(row, high) + (high - layout.gap) / 2,
                        cell_text(map, value, layout.short_numbers),
                        {layout.number_size, Anchor::middle,
                         ink_on(RowColors(map, panel, row).of(column))});
        }
    }
}

/// As much of it as is as long as a line of panels is high.
std::string row_heading_of(const HeatMap& map, const Layout& layout, std::size_t group) {
    const std::string heading = map.row_heading(group);
    std::size_t columns = heading.size();
    const auto shown = [&] { return label_text(heading, columns); };
    while (columns > 1 && text_width(shown(), layout.style.text) > layout.pitch_y) --columns;
    return shown();
}

void draw_foot(Canvas& canvas, const HeatMap& map, const Layout& layout, int y) {
    const PictureStyle& style = layout.style;
    const Lettering small{small_size(style), Anchor::start, quiet_ink};
    const int line = line_of(small.size);
    int at = y + layout.foot + line / 2;
    double x = layout.left;
    for (const Swatch& swatch : swatches_of(map)) {
        const int left = static_cast<int>(x), side = style.text;
        canvas.fill({left - 1, at - side / 2 - 1, side + 2, side + 2}, frame_color);
        canvas.fill({left, at - side / 2, side, side}, swatch.color);
        canvas.text(left + side * 3 / 2, at, swatch.words, small);
        x += width_of(swatch, style);
    }
    if (x > layout.left) at += line;
    for (const std::string& words : layout.words) {
        canvas.text(layout.left, at, words, small);
        at += line;
    }
}

}  // namespace

std::string short_label(const std::string& label) {
    return label_text(label, widest_picture_label);
}

std::string panel_title_of(const HeatMap& map, const Layout& layout, std::size_t panel) {
    return label_text(layout.has_headings ? map.column_heading(panel) : map.panels[panel].title,
                      widest_panel_title);
}

std::string cell_text(const HeatMap& map, double value, bool is_short) {
    if (!std::isfinite(value)) return "";
    std::array<char, 32> text{};
    constexpr double whole = 100;  // from here on decimals are not significant
    const bool is_weight = !map.is_diverging && map.peak < whole;
    if (is_weight && value == 0) return "0";
    std::snprintf(text.data(), text.size(), is_weight ? "%.2f" : "%.3g", value);
    std::string number = text.data();
    const std::size_t zero = number.find("0.");
    if (is_short && (zero == 0 || (zero == 1 && number[0] == '-'))) number.erase(zero, 1);
    return number;
}

double swatches_width(const HeatMap& map, const PictureStyle& style) {
    double width = 0;
    for (const Swatch& swatch : swatches_of(map)) width += width_of(swatch, style);
    return width;
}

void draw(Canvas& canvas, const HeatMap& map, const Layout& layout, int y) {
    const PictureStyle& style = layout.style;
    int at = y + style.text;
    const auto lines = [&](const std::vector<std::string>& texts, const Lettering& lettering) {
        for (const std::string& text : texts) {
            canvas.text(layout.left, at + line_of(lettering.size) / 2, text, lettering);
            at += line_of(lettering.size);
        }
    };
    lines(layout.heading, {heading_size(style)});
    lines(layout.settings, {small_size(style), Anchor::start, quiet_ink});

    Box grid{layout.left, y + layout.top, 0, 0};
    for (std::size_t panel = 0; panel < map.panels.size(); ++panel) {
        Box box = layout.panel_box(map, panel);
        box.y += y;
        // A table's headings are above its first line of panels and left of its first column, and
        // the labels of its columns below its last line.
        const bool is_left = box.x == layout.left;
        const bool is_top = !layout.has_headings || panel < layout.across;
        const bool is_bottom = !layout.has_headings || panel + layout.across >= map.panels.size();
        const std::string title = is_top ? panel_title_of(map, layout, panel) : "";
        if (!title.empty())
            canvas.text(box.x, box.y - style.text / 4 - style.line() / 2, title, {style.text});
        if (layout.has_headings && is_left)
            canvas.text(style.text * 3 / 2 + style.line() * 3 / 2, box.y + box.height / 2,
                        row_heading_of(map, layout, panel / layout.across),
                        {style.text, Anchor::middle, ink, Turn::upright});
        const int gap = layout.gap;
        const Box inside{box.x - gap, box.y - gap, box.width + gap, box.height + gap};
        canvas.fill({inside.x - 1, inside.y - 1, inside.width + 2, inside.height + 2}, frame_color);
        canvas.fill(inside, background);
        canvas.cells(map, panel, box, gap);
        if (layout.number_size > 0) draw_numbers(canvas, map, panel, layout, box);
        draw_labels(canvas, map, layout, box, is_left, is_bottom);
        grid.width = std::max(grid.width, box.x + box.width - grid.x);
        grid.height = std::max(grid.height, box.y + box.height - grid.y);
    }
    const Lettering axis{style.text, Anchor::middle, quiet_ink};
    canvas.text(style.text + style.line() / 2, grid.y + grid.height / 2, map.row_axis,
                {axis.size, axis.anchor, axis.color, Turn::upright});
    canvas.text(grid.x + grid.width / 2,
                grid.y + grid.height + layout.labels_height + style.text / 4 + style.line() / 2,
                map.column_axis, axis);
    draw_bar(canvas, map, layout, y);
    draw_foot(canvas, map, layout, y);
}

RowColors::RowColors(const HeatMap& map, std::size_t panel, std::size_t row)
    : map_(map), panel_(panel), row_(row), scale_(map.row_scale(panel, row)) {}

Color RowColors::of(std::size_t column) const {
    if (map_.is_masked(panel_, row_, column)) return masked_ground;
    const double value = map_.value(panel_, row_, column);
    if (!std::isfinite(value)) return no_number;
    if (map_.is_dropped(value)) return dropped_ground;
    return color_at(scale_.position(value), map_.is_diverging);
}

}  // namespace attn::io
