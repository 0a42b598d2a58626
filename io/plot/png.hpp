// Heat maps as PNG pictures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/file/output.hpp"
#include "io/plot/colors.hpp"
#include "io/plot/heat_map.hpp"
#include "io/plot/picture.hpp"

namespace attn::io {

/// Rows of colours from the top.
struct Pixels {
    std::size_t width = 0, height = 0;
    std::vector<Color> colors;

    Pixels(std::size_t wide, std::size_t high, const Color& color)
        : width(wide), height(high), colors(wide * high, color) {}
    Color& at(std::size_t x, std::size_t y) { return colors[y * width + x]; }
};

/// With a palette if there are at most 256 colours. Errors: kind unsupported for pictures that are
/// too large for the format.
std::string png_of(const Pixels& pixels);

/// The layout of a map's PNG picture, which has twice the resolution of the screen; text is larger
/// in pictures that exceed a screen.
Layout pixel_layout(const HeatMap& map);

/// Maps below each other. All pixels of a cell have its colour, except those of its number.
void write_png(Output& out, const std::vector<HeatMap>& maps);

}  // namespace attn::io
