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

/// Where everything stands in a map's PNG picture. Texts are twice the font's size; smaller where
/// only this leaves room for every label, larger in pictures that no screen shows whole.
Layout pixel_layout(const HeatMap& map);

/// Maps below each other. The pixels of a cell all have its colour; those of blocked cells are
/// hatched.
void write_png(Output& out, const std::vector<HeatMap>& maps);

/// The colour of the pixel (x, y) where blocked cells are hatched with lines so far apart.
inline Color hatch_color(std::size_t x, std::size_t y, std::size_t apart) {
    return (x + y) % apart < apart / 4 ? blocked_line : blocked_ground;
}

}  // namespace attn::io
