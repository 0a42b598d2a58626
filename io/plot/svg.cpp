// Attributes only, without style sheets or ids, which would collide between several pictures in one
// page.
#include "io/plot/picture.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/text/text.hpp"

namespace attn::io {
namespace {

/// Of one map: more are drawn as images.
constexpr std::size_t max_shapes = 65536, max_shapes_a_row = 256;

/// Text of three times the size in pictures that exceed a screen.
Layout svg_layout(const HeatMap& map) {
    constexpr int text = 12, larger_text = 36, screen = 2000, wide = 1200, high = 900;
    Layout layout = layout_of(map, {text, wide, high});
    if (std::max(layout.width, layout.height) <= screen) return layout;
    return layout_of(map, {larger_text, wide, high});
}

/// The data of a path around a rectangle.
std::string outline(int x, int y, int width, int height) {
    const std::string across = std::to_string(width);
    return "M" + std::to_string(x) + " " + std::to_string(y) + "h" + across + "v" +
           std::to_string(height) + "h-" + across + "z";
}

std::string attribute(std::string_view name, std::string_view value) {
    return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}
std::string attribute(std::string_view name, int value) {
    return attribute(name, std::to_string(value));
}

/// One decimal if it is significant.
std::string decimal(double value) {
    const auto tenths = std::lround(10 * value);
    std::string text = std::to_string(tenths / 10);
    if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
    return text;
}

/// Rows or columns: the elements of a cell, the first index and their number.
struct CellIndices {
    std::size_t first, step, count;
};

/// The names of rows or columns in tooltips: "5 with", "4 to 7" for pooled cells.
class CellNames {
public:
    CellNames(const std::string& axis, const std::vector<std::string>& labels, bool are_tokens,
              const CellIndices& indices)
        : axis_(markup_text(label_text(axis, widest)) + " "), indices_(indices) {
        const bool has_words = are_tokens && indices.step == 1;
        for (std::size_t i = 0; has_words && i < labels.size(); ++i)
            words_.push_back(" " + markup_text(label_text(labels[i], widest)));
    }

    std::string of(std::size_t first, std::size_t last) const {
        const std::size_t begin = first * indices_.step,
                          end = std::min((last + 1) * indices_.step, indices_.count) - 1;
        return axis_ + name_of(begin) + (end == begin ? "" : " to " + name_of(end));
    }
    std::string of(std::size_t cell) const { return of(cell, cell); }

private:
    std::string name_of(std::size_t index) const {
        return std::to_string(indices_.first + index) + (words_.empty() ? "" : words_[index]);
    }

    static constexpr std::size_t widest = 40;
    std::string axis_;
    CellIndices indices_;
    std::vector<std::string> words_;  // with a blank before them; of single indices, or none
};

class SvgCanvas : public Canvas {
public:
    explicit SvgCanvas(Output& out) : out_(out) {}

    /// Of the next map.
    void set_size(int size) { size_ = size; }

    void fill(const Box& box, const Color& color) override {
        out_ << "<path" + attribute("fill", hex_text(color)) +
                    attribute("d", outline(box.x, box.y, box.width, box.height)) + "/>\n";
    }

    void text(int x, int y, const std::string& text, const Lettering& lettering) override {
        const std::string below = decimal(baseline * lettering.size);
        std::string how =
            attribute("x", x) + attribute("y", decimal(y + baseline * lettering.size));
        if (lettering.turn != Turn::none) {
            const char* angle = lettering.turn == Turn::slanted ? "-45" : "-90";
            how = attribute("transform", "translate(" + std::to_string(x) + " " +
                                             std::to_string(y) + ")rotate(" + angle + ")") +
                  attribute("y", below);
        }
        if (lettering.anchor != Anchor::start)
            how += attribute("text-anchor", lettering.anchor == Anchor::end ? "end" : "middle");
        if (lettering.size != size_) how += attribute("font-size", lettering.size);
        if (!(lettering.color == ink)) how += attribute("fill", hex_text(lettering.color));
        // If the viewer's fonts may be wider than ours.
        const TextLine line = text_line(text);
        if (!line.is_plain)
            how += attribute("textLength", decimal(line.width * lettering.size)) +
                   attribute("lengthAdjust", "spacingAndGlyphs");
        out_ << "<text" + how + ">" + markup_text(text) + "</text>\n";
    }

    void cells(const HeatMap& map, std::size_t panel, const Box& box, int gap) override {
        if (map.rows == 0 || map.columns == 0) return;
        const CellNames rows(map.row_axis, map.row_labels, map.tokens_on_rows,
                             {map.first_row, map.row_step, map.all_rows});
        const CellNames columns(map.column_axis, map.column_labels, map.tokens_on_columns,
                                {0, map.column_step, map.all_columns});
        const bool is_large = map.rows > max_shapes_a_row || map.columns > max_shapes_a_row ||
                              map.rows * map.columns * map.panels.size() > max_shapes;
        if (is_large) image(map, panel, box);
        out_ << "<g" +
                    attribute("transform", "translate(" + std::to_string(box.x) + " " +
                                               std::to_string(box.y) + ")") +
                    attribute("pointer-events", "all") +
                    (is_large ? attribute("fill", "none") : "") + ">\n";
        const Box cell{0, 0, box.width / static_cast<int>(map.columns),
                       box.height / static_cast<int>(map.rows)};
        for (std::size_t row = 0; row < map.rows; ++row)
            if (is_large)
                largest_of_row(map, panel, row, cell, rows, columns);
            else
                runs_of_row(map, panel, row, cell, gap, rows, columns);
        out_ << "</g>\n";
    }

private:
    void runs_of_row(const HeatMap& map, std::size_t panel, std::size_t row, const Box& cell,
                     int gap, const CellNames& rows, const CellNames& columns) {
        const std::string name = rows.of(row) + ", ";
        const RowColors colors(map, panel, row);
        std::string text;
        for (std::size_t column = 0, end = 0; column < map.columns; column = end) {
            const bool masked = map.is_masked(panel, row, column);
            const double value = map.value(panel, row, column);
            const auto is_same = [&](std::size_t other) {
                if (masked || map.is_masked(panel, row, other))
                    return masked && map.is_masked(panel, row, other);
                const double x = map.value(panel, row, other);
                return x == value || (!std::isfinite(x) && !std::isfinite(value));
            };
            for (end = column + 1; end < map.columns && is_same(end);) ++end;
            text += "<path" + attribute("fill", hex_text(colors.of(column)));
            std::string data;
            const std::size_t step = gap == 0 ? end - column : 1;
            for (std::size_t from = column; from < end; from += step)
                data += outline(static_cast<int>(from) * cell.width,
                                static_cast<int>(row) * cell.height,
                                static_cast<int>(step) * cell.width - gap, cell.height - gap);
            text += attribute("d", data);
            text += "><title>" + name + columns.of(column, end - 1) + ": ";
            text += masked ? "masked" : cell_text(map, value);
            text += "</title></path>\n";
        }
        out_ << text;
    }

    static std::string largest_text(const HeatMap& map, double value) {
        return (map.is_diverging ? "largest by magnitude " : "largest ") + map.number_text(value);
    }

    /// Of a cell that is not masked.
    static std::string cell_text(const HeatMap& map, double value) {
        if (map.is_dropped(value)) return dropped_words;
        const bool is_pooled = map.row_step * map.column_step > 1 && std::isfinite(value);
        return is_pooled ? largest_text(map, value) : map.number_text(value);
    }

    /// An invisible shape for the tooltip of a row of an image.
    void largest_of_row(const HeatMap& map, std::size_t panel, std::size_t row, const Box& cell,
                        const CellNames& rows, const CellNames& columns) {
        std::size_t largest = map.columns;
        bool lacks_number = false;
        for (std::size_t column = 0; column < map.columns; ++column) {
            if (map.is_masked(panel, row, column)) continue;
            const double size = std::abs(map.value(panel, row, column));
            if (!std::isfinite(size))
                lacks_number = true;
            else if (largest == map.columns || size > std::abs(map.value(panel, row, largest)))
                largest = column;
        }
        std::string text = lacks_number ? "no number" : "masked";
        if (largest != map.columns)
            text = largest_text(map, map.value(panel, row, largest)) + " at " +
                   columns.of(largest) + (lacks_number ? "; other cells have no number" : "");
        out_ << "<path" +
                    attribute("d",
                              outline(0, static_cast<int>(row) * cell.height,
                                      static_cast<int>(map.columns) * cell.width, cell.height)) +
                    "><title>" + rows.of(row) + ": " + text + "</title></path>\n";
    }

    /// The panel at one pixel per cell.
    void image(const HeatMap& map, std::size_t panel, const Box& box) {
        Pixels pixels(map.columns, map.rows, masked_ground);
        for (std::size_t row = 0; row < map.rows; ++row) {
            const RowColors colors(map, panel, row);
            for (std::size_t column = 0; column < map.columns; ++column)
                pixels.at(column, row) = colors.of(column);
        }
        out_ << "<image" + attribute("x", box.x) + attribute("y", box.y) +
                    attribute("width", box.width) + attribute("height", box.height) +
                    attribute("preserveAspectRatio", "none") +
                    attribute("image-rendering", "pixelated") +
                    " xlink:href=\"data:image/png;base64,"
             << base64(png_of(pixels)) << "\"/>\n";
    }

    Output& out_;
    int size_ = 0;
};

}  // namespace

void write_svg(Output& out, const std::vector<HeatMap>& maps) {
    const auto [layouts, width, height] = Stack(maps, svg_layout);
    const std::string size = std::to_string(width) + " " + std::to_string(height);
    out << "<svg xmlns=\"http://www.w3.org/2000/svg\" "
           "xmlns:xlink=\"http://www.w3.org/1999/xlink\"" +
               attribute("width", width) + attribute("height", height) +
               attribute("viewBox", "0 0 " + size) + attribute("fill", hex_text(ink)) +
               attribute("font-family", "DejaVu Sans,Verdana,Arial,sans-serif") +
               attribute("shape-rendering", "crispEdges") + attribute("xml:space", "preserve") +
               ">\n";
    if (!maps.empty())
        out << "<title>" + markup_text(label_text(maps[0].title, 120)) + "</title>\n";
    SvgCanvas canvas(out);
    canvas.fill({0, 0, width, height}, background);
    int y = 0;
    for (std::size_t i = 0; i < maps.size(); ++i) {
        canvas.set_size(layouts[i].style.text);
        // Text is drawn over cells, whose tooltips must remain visible.
        out << "<g" + attribute("font-size", layouts[i].style.text) +
                   attribute("pointer-events", "none") + ">\n";
        draw(canvas, maps[i], layouts[i], y);
        out << "</g>\n";
        y += layouts[i].height;
    }
    out << "</svg>\n";
}

std::string svg_element(const std::vector<HeatMap>& maps) {
    TextOutput out;
    write_svg(out, maps);
    return std::move(out.text());
}

}  // namespace attn::io
