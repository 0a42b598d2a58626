// Heat maps as text for terminals.
#pragma once

#include <algorithm>

#include "core/base/function_ref.hpp"
#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::io {

/// The number of colours of a terminal; none: characters as shades.
enum class ColorDepth { none, ansi16, ansi256, rgb };

struct Terminal {
    ColorDepth depth = ColorDepth::none;
    std::size_t columns = 80;
};

/// The properties of the output from the environment: NO_COLOR, CLICOLOR_FORCE, COLORTERM, TERM and
/// COLUMNS. `variable` returns null for those that are not set; `wide` is the width that the
/// terminal reports, 0 without a terminal. Sources: no-color.org, bixense.com/clicolors.
Terminal terminal_of(bool is_terminal, std::size_t wide,
                     FunctionRef<const char*(const char*)> variable);

/// The number of cells that fit the terminal: its width, or fewer if heads of larger matrices fit
/// side by side.
HeatMapLimits limits_of(const Terminal& terminal, const NamedArray& array);

/// The title, the labelled matrices, as many side by side as fit, with numbers in small ones and
/// half blocks in large ones; then the legend and the settings. No line is wider than the terminal.
void write_terminal(Output& out, const HeatMap& map, const Terminal& terminal);

// Colours of a terminal, and shades if it has none.

/// The parameters of the escape sequence that sets the foreground or background colour: the colour
/// itself, or the nearest one of the terminal's 256 or 16. Empty without colours. Source: ECMA-48,
/// SGR; xterm's palette.
std::string color_code(const Color& color, bool ground, ColorDepth depth);

/// The colour of a position on the scale at this colour depth: with 16 colours one of a few that
/// grow lighter from 0 up, since the nearest ones to viridis do not.
Color terminal_color(double position, bool is_diverging, ColorDepth depth);

/// One character for a position on the scale, denser with the distance from 0; negative numbers
/// have different characters.
std::string_view shade_at(double position, bool is_diverging);

// The layout of a heat map on a terminal.

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
