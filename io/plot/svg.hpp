// Heat maps as SVG pictures.
#pragma once

#include <string>
#include <vector>

#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::io {

/// Maps below each other. Each cell, or run of equal cells, has a tooltip with its number; the
/// panels of large maps are images with one tooltip per row.
void write_svg(Output& out, const std::vector<HeatMap>& maps);

/// The same as one element: without ids and style sheets, so that a page can hold several.
std::string svg_element(const std::vector<HeatMap>& maps);

}  // namespace attn::io
