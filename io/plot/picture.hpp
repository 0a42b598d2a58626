// Heat maps as pictures in pixels: where everything stands, and all that is drawn beside the
// cells. The formats bring a canvas.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/plot/colors.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::io {

struct Box {
    int x, y, width, height;
};

/// The point of a text that its place names; turned texts read upwards.
enum class Anchor { start, middle, end };

/// What a format can draw.
class Canvas {
public:
    Canvas() = default;
    Canvas(const Canvas&) = delete;
    Canvas& operator=(const Canvas&) = delete;
    virtual ~Canvas() = default;

    virtual void fill(const Box& box, const Color& color) = 0;
    virtual void hatch(const Box& box) = 0;
    /// (x, y) is on the line halfway up the text.
    virtual void text(int x, int y, const std::string& text, Anchor anchor, bool turned) = 0;
    virtual void cells(const HeatMap& map, std::size_t panel, const Box& box) = 0;
};

inline constexpr Color background{0xff, 0xff, 0xff}, ink{0x22, 0x22, 0x22},
    frame_color{0xc0, 0xc0, 0xc0};

struct PictureStyle {
    int advance, line;  ///< width of a character, height of a line
    int room;           ///< pixels that the cells of all panels may take each way
    int largest_cell;
};

/// Where the parts of a map's picture stand. The heads of a batch entry share one line of panels,
/// or several where that makes the cells larger.
struct Layout {
    PictureStyle style;
    std::size_t across = 1, lines = 1;
    int cell_width = 1, cell_height = 1;
    std::size_t row_every = 1, column_every = 1;  ///< of so many labels one is shown
    bool turned = false;                          ///< the labels of the columns
    int margin = 0;
    int left = 0, top = 0;         ///< of the first panel's cells
    int pitch_x = 0, pitch_y = 0;  ///< from one panel to the next
    int labels_height = 0;         ///< below a panel
    int width = 0, height = 0;     ///< of all

    /// The cells of a panel; y is counted from the top of the map.
    Box panel_box(const HeatMap& map, std::size_t panel) const;
    bool shows_all_labels() const { return row_every == 1 && column_every == 1; }
};

Layout layout_of(const HeatMap& map, const PictureStyle& style);

/// Draws a map whose top is at y.
void draw(Canvas& canvas, const HeatMap& map, const Layout& layout, int y);

/// The colour of a cell that is not blocked.
Color cell_color(const HeatMap& map, std::size_t panel, std::size_t row, std::size_t column);

/// Sizes of a map's matrices that keep its picture at most about 4096 pixels wide and high.
HeatMapLimits picture_limits(const NamedArray& array);

}  // namespace attn::io
