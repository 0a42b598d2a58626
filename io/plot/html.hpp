// Heat maps as a page for browsers.
#pragma once

#include <cstddef>
#include <vector>

#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::io {

/// Pages with more cells in total store their numbers packed (number_planes.hpp); smaller ones as
/// readable lists.
inline constexpr std::size_t max_listed_cells = 100'000;

/// More bytes of packed numbers are rounded until they fit; the page states that.
inline constexpr double max_packed_bytes = 24e6;

/// One self-contained HTML document that makes no network requests: the page of io/plot/page with
/// the maps, at least one, as JSON in it. The weights are shown first, or the first map if there
/// are none.
void write_html(Output& out, const std::vector<HeatMap>& maps);

}  // namespace attn::io
