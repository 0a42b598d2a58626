// How a terminal shows a colour, and a shade where it has none.
#pragma once

#include <string>
#include <string_view>

#include "io/plot/colors.hpp"
#include "io/plot/terminal.hpp"

namespace attn::io {

/// The parameters of the escape sequence that sets the colour of what follows, or of its ground:
/// the colour itself, or the nearest one of the terminal's 256 or 16. Empty without colours.
/// Source: ECMA-48, SGR; xterm's palette.
std::string color_code(const Color& color, bool ground, ColorDepth depth);

/// The colour of a place on the scale as a terminal of that depth shows it: of 16 colours one of a
/// few that grow lighter from 0 up, since the nearest ones to viridis do not.
Color terminal_color(double position, bool is_diverging, ColorDepth depth);

/// One character for a place on the scale, the darker the farther from 0; numbers below 0 have
/// characters of their own.
std::string_view shade_at(double position, bool is_diverging);

}  // namespace attn::io
