// Texts in pictures: which glyphs they are, and where each stands.
#pragma once

#include <string_view>
#include <vector>

#include "io/plot/font.hpp"

namespace attn::io {

struct PlacedGlyph {
    Glyph glyph;
    double at = 0;  ///< from the text's start, in parts of the font's size
};

/// One line as it is seen: from the left, Arabic letters joined, right-to-left texts turned round.
/// What other scripts put before, below or into one another stands side by side.
struct TextLine {
    std::vector<PlacedGlyph> glyphs;
    double width = 0;      ///< in parts of the font's size
    bool is_plain = true;  ///< all of the first font, in the order in which it is written
};

/// Of a UTF-8 text. Errors: std::bad_alloc.
TextLine text_line(std::string_view text);

/// Pixels that a text takes at a font of so many pixels.
double text_width(std::string_view text, double size);

}  // namespace attn::io
