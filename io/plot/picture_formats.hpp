// The picture formats of heat maps, one row each.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "io/plot/html.hpp"
#include "io/plot/png.hpp"
#include "io/plot/svg.hpp"

namespace attn::io {

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
