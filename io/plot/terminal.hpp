// Heat maps as text for terminals.
#pragma once

#include <cstddef>
#include <string>

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

}  // namespace attn::io
