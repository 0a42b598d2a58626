// Heat maps as pictures in pixels: the layout, and everything drawn around the cells. The formats
// provide a canvas.
#pragma once

#include <array>

#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"
#include "io/plot/text_line.hpp"

namespace attn::io {

struct Box {
    int x, y, width, height;
};

inline constexpr Color background{0xff, 0xff, 0xff}, ink{0x22, 0x22, 0x22},
    quiet_ink{0x66, 0x66, 0x66}, frame_color{0xdd, 0xdd, 0xdd};

/// The anchor of a text.
enum class Anchor { start, middle, end };

/// How a text is drawn.
struct Lettering {
    int size;  ///< of the font, in pixels
    Anchor anchor = Anchor::start;
    Color color = ink;
    Turn turn = Turn::none;
};

/// The drawing operations of a format.
class Canvas {
public:
    Canvas() = default;
    Canvas(const Canvas&) = delete;
    Canvas& operator=(const Canvas&) = delete;
    virtual ~Canvas() = default;

    virtual void fill(const Box& box, const Color& color) = 0;
    /// (x, y) is on the line halfway up the text's capital letters.
    virtual void text(int x, int y, const std::string& text, const Lettering& lettering) = 0;
    /// The cells of a panel, each with a gap at its right and lower edges.
    virtual void cells(const HeatMap& map, std::size_t panel, const Box& box, int gap) = 0;
};

/// The distance of the baseline below the middle of capital letters, relative to the font's size.
inline constexpr double baseline = 0.36;

struct PictureStyle {
    int text;                  ///< size of the labels' font
    int room_wide, room_high;  ///< pixels available for the cells of all panels
    int line() const { return text * 5 / 4; }
};

/// The layout of a map's picture. The heads of a batch entry share one line of panels, or several
/// if that makes the cells much larger.
struct Layout {
    PictureStyle style;
    std::size_t across = 1, lines = 1;
    int cell_width = 1, cell_height = 1;
    int gap = 0;  ///< of a cell's size, at its right and lower edges
    std::size_t row_every = 1, column_every = 1;  ///< one of this many labels is shown
    Turn turn = Turn::none;                       ///< of the columns' labels
    int number_size = 0;                          ///< of the font in the cells; 0: no numbers
    bool short_numbers = false;                   ///< .55
    bool has_headings = false;                    ///< of rows and columns of panels, not titles
    int left = 0, top = 0;                        ///< of the first panel's cells
    int pitch_x = 0, pitch_y = 0;                 ///< from one panel to the next
    int labels_height = 0;                        ///< below a panel
    Box bar{};     ///< of colours; y is counted from the top of the map
    int foot = 0;  ///< the start of the lines below the panels
    std::vector<std::string> heading, settings, words;  ///< in lines
    int width = 0, height = 0;                          ///< of all

    /// The cells of a panel; y is counted from the top of the map.
    Box panel_box(const HeatMap& map, std::size_t panel) const;
};

Layout layout_of(const HeatMap& map, const PictureStyle& style);

/// The layouts of maps below each other, and the size of the whole.
struct Stack {
    /// `layout` makes that of a map.
    Stack(const std::vector<HeatMap>& maps, Layout (*layout)(const HeatMap&));
    std::vector<Layout> layouts;
    int width = 1, height = 0;
};

/// Draws a map whose top is at y.
void draw(Canvas& canvas, const HeatMap& map, const Layout& layout, int y);

/// The colours of a row's cells.
class RowColors {
public:
    RowColors(const HeatMap& map, std::size_t panel, std::size_t row);
    Color of(std::size_t column) const;

private:
    const HeatMap& map_;
    std::size_t panel_, row_;
    HeatMap::RowScale scale_;
};

/// Limits for a map's matrices that keep its picture at most about 4096 pixels wide and high.
HeatMapLimits picture_limits(const NamedArray& array);

// The text of pictures and its size, for layout and drawing.

inline constexpr std::size_t widest_title = 200;

inline int heading_size(const PictureStyle& style) {
    return style.text * 4 / 3;
}
inline int small_size(const PictureStyle& style) {
    return style.text * 5 / 6;
}
inline int line_of(int size) {
    return size * 7 / 5;
}

/// From a panel's edge, or the bar's, to a label.
inline int label_gap(const PictureStyle& style) {
    return style.text / 2;
}

std::string short_label(const std::string& label);
/// The title of a panel, or of a column of panels.
std::string panel_title_of(const HeatMap& map, const Layout& layout, std::size_t panel);

/// The number in a cell: weights to two decimals, others to three significant digits; short ones
/// without the 0 before the point.
std::string cell_text(const HeatMap& map, double value, bool is_short);

/// The size of the line that explains the colours of masked cells and of cells without a number;
/// 0: none.
double swatches_width(const HeatMap& map, const PictureStyle& style);

// Heat maps as a page for browsers.

/// Pages with more cells in total store their numbers packed (heat_map.hpp); smaller ones as
/// readable lists.
inline constexpr std::size_t max_listed_cells = 100'000;

/// More bytes of packed numbers are rounded until they fit; the page states that.
inline constexpr double max_packed_bytes = 24e6;

/// One self-contained HTML document that makes no network requests: the page of io/plot/page with
/// the maps, at least one, as JSON in it. The weights are shown first, or the first map if there
/// are none.
void write_html(Output& out, const std::vector<HeatMap>& maps);

// Heat maps as PNG pictures.

/// Rows of colours from the top.
struct Pixels {
    std::size_t width = 0, height = 0;
    std::vector<Color> colors;

    Pixels(std::size_t wide, std::size_t high, const Color& color)
        : width(wide), height(high), colors(wide * high, color) {}
    Color& at(std::size_t x, std::size_t y) { return colors[y * width + x]; }
};

/// With a palette if there are at most 256 colours. Errors: kind unsupported for pictures that are
/// too large for the format.
std::string png_of(const Pixels& pixels);

/// The layout of a map's PNG picture, which has twice the resolution of the screen; text is larger
/// in pictures that exceed a screen.
Layout pixel_layout(const HeatMap& map);

/// Maps below each other. All pixels of a cell have its colour, except those of its number.
void write_png(Output& out, const std::vector<HeatMap>& maps);

// Heat maps as SVG pictures.

/// Maps below each other. Each cell, or run of equal cells, has a tooltip with its number; the
/// panels of large maps are images with one tooltip per row.
void write_svg(Output& out, const std::vector<HeatMap>& maps);

/// The same as one element: without ids and style sheets, so that a page can hold several.
std::string svg_element(const std::vector<HeatMap>& maps);

// The picture formats of heat maps, one row each.

struct PictureFormat {
    std::string_view name;
    std::array<std::string_view, 3> suffixes;
    void (*write)(Output& out, const std::vector<HeatMap>& maps);
    bool holds_all = false;  ///< every array with every cell: the viewer selects
};

inline constexpr std::array<PictureFormat, 3> picture_formats{
    {{"svg", {".svg"}, write_svg},
     {"png", {".png"}, write_png},
     {"html", {".html", ".htm"}, write_html, true}}};

}  // namespace attn::io
