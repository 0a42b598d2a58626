// The fonts of pictures, which the program holds: DejaVu Sans, and for what it lacks Droid Sans
// Fallback (Chinese, Japanese, Korean) and GNU Unifont (the rest of Unicode, drawn plainly).
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

/// Of the first font that has the character; of the last resort U+FFFD.
/// Errors: std::bad_alloc.
Glyph glyph_of(char32_t character);

/// Added to the advance where `right` follows `left`: mostly 0, else a little less.
double kerning(const Glyph& left, const Glyph& right);

/// Which way a text goes: to the right, to the right and upwards by 45 degrees, upwards.
enum class Turn { none, slanted, upright };

/// How much of each pixel a glyph covers: 0 to 255, rows from the top.
struct Coverage {
    int left = 0, top = 0;  ///< the place of the first pixel
    int width = 0, height = 0;
    std::vector<std::uint8_t> parts;
};

/// A glyph whose origin is at (x, y), at so many pixels an em. The same bytes on every machine.
Coverage covered_by(const Glyph& glyph, double size, Turn turn, double x, double y);

}  // namespace attn::io
