// The layout of a heat map on a terminal.
#pragma once

#include <algorithm>
#include <cstddef>

#include "io/plot/heat_map.hpp"
#include "io/plot/terminal.hpp"

namespace attn::io {

inline constexpr std::size_t panel_gap = 2;  ///< columns between panels

/// The form of a map's cells: with numbers, as squares of two columns, or one column each and, in
/// colours, two rows per line.
struct View {
    bool is_numbered = false, is_halved = false;
    std::size_t cell = 1, label = 0;  ///< columns; the label's includes the blank after it
    std::size_t across = 1;           ///< panels side by side
    std::size_t lines = 0;            ///< of all panels
};

/// The most detailed view that fits a screen, or has all heads side by side; otherwise the lowest.
View view_of(const HeatMap& map, const Terminal& terminal);

/// The remainder, or 0.
inline std::size_t less(std::size_t from, std::size_t taken) {
    return from - std::min(from, taken);
}

}  // namespace attn::io
