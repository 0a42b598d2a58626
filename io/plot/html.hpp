// Heat maps as a page for browsers.
#pragma once

#include <cstddef>
#include <vector>

#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::io {

/// Maps of more cells carry their numbers as base64 of little-endian float32 or float64, and which
/// cells are blocked as base64 of one bit a cell, lowest bit first; smaller ones as lists that can
/// be read.
inline constexpr std::size_t most_listed_cells = 100'000;

/// One HTML document that needs nothing beside it and asks the network for nothing: the page of
/// io/plot/page with the maps, at least one, as JSON in it. The first is shown first.
void write_html(Output& out, const std::vector<HeatMap>& maps);

}  // namespace attn::io
