// Text in pictures: its glyphs and their positions.
#pragma once

#include <string_view>
#include <vector>

#include "io/plot/font.hpp"

namespace attn::io {

struct PlacedGlyph {
    Glyph glyph;
    double at = 0;  ///< from the text's start, in parts of the font's size
};

/// One line in visual order: from the left, Arabic letters joined, right-to-left text reversed.
/// Letters that other scripts reorder, stack or join are side by side.
struct TextLine {
    std::vector<PlacedGlyph> glyphs;
    double width = 0;      ///< in parts of the font's size
    bool is_plain = true;  ///< all of the first font, in logical order
};

/// Of a UTF-8 text. Errors: std::bad_alloc.
TextLine text_line(std::string_view text);

/// Width of a text in pixels at a font size in pixels.
double text_width(std::string_view text, double size);

}  // namespace attn::io
