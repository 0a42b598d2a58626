// A bitmap font for pictures: X11's misc-fixed 6x13, converted from Debian's xfonts-base 1.0.5
// (6x13.pcf.gz), which says "Public domain font.  Share and enjoy."
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace attn::io {

inline constexpr std::size_t glyph_width = 6, glyph_height = 13;

/// Rows from the top; the leftmost of a row's pixels is bit 5.
using Glyph = std::array<std::uint8_t, glyph_height>;

/// Empty for characters that the font data leaves out: it holds Latin, Greek and Cyrillic letters,
/// punctuation, arrows, signs of control characters, boxes and blocks.
std::optional<Glyph> glyph_of(char32_t character);

}  // namespace attn::io
