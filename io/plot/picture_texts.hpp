// The text of pictures and its size, for layout and drawing.
#pragma once

#include <cstddef>
#include <string>

#include "io/plot/picture.hpp"

namespace attn::io {

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
std::string panel_title_of(const HeatPanel& panel);

/// The number in a cell: weights to two decimals, others to three significant digits; short ones
/// without the 0 before the point.
std::string cell_text(const HeatMap& map, double value, bool is_short);

/// The size of the line that explains the colours of masked cells and of cells without a number;
/// 0: none.
double swatches_width(const HeatMap& map, const PictureStyle& style);

}  // namespace attn::io
