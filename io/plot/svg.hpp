// Heat maps as SVG pictures.
#pragma once

#include <string>
#include <vector>

#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::io {

/// Maps below each other. Each cell, or run of cells that are equal, has a tooltip with its
/// number; the panels of large maps are images with a tooltip a row.
void write_svg(Output& out, const std::vector<HeatMap>& maps);

/// The same, which is one element: it has no ids and no style sheet, and may stand in a page beside
/// others.
std::string svg_element(const std::vector<HeatMap>& maps);

}  // namespace attn::io
