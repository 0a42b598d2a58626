// The embedded fonts of pictures: DejaVu Sans, then Droid Sans Fallback (Chinese, Japanese, Korean)
// and GNU Unifont (the rest of Unicode, as bitmaps).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attn::io {

/// A drawn form of one of the fonts.
struct Glyph {
    std::uint8_t font = 0;
    int index = 0;
    double advance = 0;  ///< to the next glyph, in parts of the font's size
};

/// The glyph in the first font that has the character; as a last resort U+FFFD. Errors:
/// std::bad_alloc.
Glyph glyph_of(char32_t character);

/// Kerning: added to the advance if `right` follows `left`; mostly 0, otherwise slightly negative.
double kerning(const Glyph& left, const Glyph& right);

/// The direction of a text: to the right, to the right and upwards by 45 degrees, upwards.
enum class Turn { none, slanted, upright };

/// The coverage of each pixel by a glyph: 0 to 255, rows from the top.
struct Coverage {
    int left = 0, top = 0;  ///< the position of the first pixel
    int width = 0, height = 0;
    std::vector<std::uint8_t> parts;
};

/// A glyph with its origin at (x, y), at this many pixels per em. The same bytes on every machine.
Coverage covered_by(const Glyph& glyph, double size, Turn turn, double x, double y);

}  // namespace attn::io
