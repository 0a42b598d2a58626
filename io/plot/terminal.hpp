// Heat maps as text for terminals.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/function_ref.hpp"
#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::io {

/// How many colours a terminal shows; none: shades of characters.
enum class ColorDepth { none, ansi16, ansi256, rgb };

struct Terminal {
    ColorDepth depth = ColorDepth::none;
    std::size_t columns = 80;
};

/// What the environment says of the place that text goes to: NO_COLOR, CLICOLOR_FORCE, COLORTERM,
/// TERM and COLUMNS. `variable` gives null for those that are not set; `wide` is what the terminal
/// itself says, 0 where there is none. Sources: no-color.org, bixense.com/clicolors.
Terminal terminal_of(bool is_terminal, std::size_t wide,
                     FunctionRef<const char*(const char*)> variable);

/// Cells that fit the terminal: as many as it is wide, or fewer where heads of larger matrices can
/// stand side by side.
HeatMapLimits limits_of(const Terminal& terminal, const NamedArray& array);

/// What the picture shows in words, the matrices with labels, as many side by side as fit, numbers
/// in small ones, half blocks in large ones; then the legend and the settings. No line is wider
/// than the terminal.
void write_terminal(Output& out, const HeatMap& map, const Terminal& terminal);

}  // namespace attn::io
