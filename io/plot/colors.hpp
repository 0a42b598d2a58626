// The colours of heat maps.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace attn::io {

struct Color {
    std::uint8_t red, green, blue;
    friend bool operator==(const Color&, const Color&) = default;
};

/// viridis, from dark at 0 to yellow at 1. Source: van der Walt and Smith, 2015 (CC0).
Color viridis(double position);

/// Red above 0, blue below, white at 0; position from -1 to 1. Source: ColorBrewer's RdBu.
Color red_blue(double position);

/// The colours of cells, in equal steps from one end to the other: at most 240, so that the picture
/// of a map needs a palette at most. An odd number if they diverge: 0 has its own colour.
std::span<const Color> cell_colors(bool is_diverging);

/// The nearest of them to `position`.
Color color_at(double position, bool is_diverging);

/// Black or white, whichever has more contrast on `ground`.
Color ink_on(const Color& ground);

/// The colours of masked cells and of cells without a number.
inline constexpr Color masked_ground{0xf0, 0xf0, 0xf0};
inline constexpr Color no_number{0xff, 0x00, 0xff};

/// "#1f9e89".
std::string hex_text(const Color& color);

}  // namespace attn::io
