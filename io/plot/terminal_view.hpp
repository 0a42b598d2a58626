// How a heat map is laid out on a terminal.
#pragma once

#include <algorithm>
#include <cstddef>

#include "io/plot/heat_map.hpp"
#include "io/plot/terminal.hpp"

namespace attn::io {

inline constexpr std::size_t panel_gap = 2;  ///< columns between panels

/// How the cells of a map are drawn: with numbers in them, as squares of two columns, or one column
/// each and, in colours, two rows a line.
struct View {
    bool is_numbered = false, is_halved = false;
    std::size_t cell = 1, label = 0;  ///< columns; the label's with the blank behind it
    std::size_t across = 1;           ///< panels side by side
    std::size_t lines = 0;            ///< of all panels
};

/// The view with the most in its cells that takes no more than a screen, or has all heads side by
/// side; else the lowest.
View view_of(const HeatMap& map, const Terminal& terminal);

/// What is left, or 0.
inline std::size_t less(std::size_t from, std::size_t taken) {
    return from - std::min(from, taken);
}

}  // namespace attn::io
