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

/// With a palette where there are at most 256 colours.
/// Errors: kind unsupported for pictures that are too large for the format.
std::string png_of(const Pixels& pixels);

/// Where everything stands in a map's PNG picture, which is twice as fine as a screen's pixels;
/// texts are larger in pictures that no screen shows whole.
Layout pixel_layout(const HeatMap& map);

/// Maps below each other. The pixels of a cell all have its colour, but for the number in it.
void write_png(Output& out, const std::vector<HeatMap>& maps);

}  // namespace attn::io
