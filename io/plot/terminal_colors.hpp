// How a terminal is asked for a colour.
#pragma once

#include <string>

#include "io/plot/colors.hpp"
#include "io/plot/terminal.hpp"

namespace attn::io {

/// The parameters of the escape sequence that sets the colour of what follows, or of its ground:
/// the colour itself, or the nearest one of the terminal's 256 or 16. Empty without colours.
/// Source: ECMA-48, SGR; xterm's palette.
std::string color_code(const Color& color, bool ground, ColorDepth depth);

}  // namespace attn::io
