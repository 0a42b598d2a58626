// Heat maps as a page for browsers.
#pragma once

#include <cstddef>
#include <vector>

#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::io {

/// Pages of more cells, of all maps together, carry their numbers packed (packed.hpp); smaller ones
/// as lists that can be read.
inline constexpr std::size_t most_listed_cells = 100'000;

/// Packed numbers of more bytes are rounded until they fit; the page says so.
inline constexpr double most_packed_bytes = 24e6;

/// One HTML document that needs nothing beside it and asks the network for nothing: the page of
/// io/plot/page with the maps, at least one, as JSON in it. The weights are shown first, or
/// the first map where there are none.
void write_html(Output& out, const std::vector<HeatMap>& maps);

}  // namespace attn::io
