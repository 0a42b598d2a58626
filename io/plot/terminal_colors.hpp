// Colours of a terminal, and shades if it has none.
#pragma once

#include <string>
#include <string_view>

#include "io/plot/colors.hpp"
#include "io/plot/terminal.hpp"

namespace attn::io {

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

}  // namespace attn::io
