// The picture formats of heat maps, one row each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/output.hpp"
#include "io/plot/colors.hpp"
#include "io/plot/heat_map.hpp"
#include "io/plot/picture.hpp"

namespace attn::io {

// Heat maps as a page for browsers.

/// Pages with more cells in total store their numbers packed (number_planes.hpp); smaller ones as
/// readable lists.
inline constexpr std::size_t max_listed_cells = 100'000;

/// More bytes of packed numbers are rounded until they fit; the page states that.
inline constexpr double max_packed_bytes = 24e6;

/// One self-contained HTML document that makes no network requests: the page of io/plot/page with
/// the maps, at least one, as JSON in it. The weights are shown first, or the first map if there
/// are none.
void write_html(Output& out, const std::vector<HeatMap>& maps);

// Heat maps as PNG pictures.

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

// Heat maps as SVG pictures.

/// Maps below each other. Each cell, or run of equal cells, has a tooltip with its number; the
/// panels of large maps are images with one tooltip per row.
void write_svg(Output& out, const std::vector<HeatMap>& maps);

/// The same as one element: without ids and style sheets, so that a page can hold several.
std::string svg_element(const std::vector<HeatMap>& maps);

// The picture formats of heat maps, one row each.

struct PictureFormat {
    std::string_view name;
    std::array<std::string_view, 3> suffixes;
    void (*write)(Output& out, const std::vector<HeatMap>& maps);
    bool holds_all = false;  ///< every array with every cell: the viewer selects
};

inline constexpr std::array<PictureFormat, 3> picture_formats{
    {{"svg", {".svg"}, write_svg},
     {"png", {".png"}, write_png},
     {"html", {".html", ".htm"}, write_html, true}}};

}  // namespace attn::io
