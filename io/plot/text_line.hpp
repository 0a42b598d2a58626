// Text in pictures: its glyphs and their positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

namespace attn::io {

// The embedded fonts of pictures: DejaVu Sans, then Droid Sans Fallback (Chinese, Japanese, Korean)
// and GNU Unifont (the rest of Unicode, as bitmaps).

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

/// Across and up, of length 1.
struct Direction {
    double across, up;
};
constexpr Direction direction_of(Turn turn) {
    constexpr double diagonal = std::numbers::sqrt2 / 2;
    return turn == Turn::none      ? Direction{1, 0}
           : turn == Turn::upright ? Direction{0, 1}
                                   : Direction{diagonal, diagonal};
}

/// The coverage of each pixel by a glyph: 0 to 255, rows from the top.
struct Coverage {
    int left = 0, top = 0;  ///< the position of the first pixel
    int width = 0, height = 0;
    std::vector<std::uint8_t> parts;
};

/// A glyph with its origin at (x, y), at this many pixels per em. The same bytes on every machine.
Coverage covered_by(const Glyph& glyph, double size, Turn turn, double x, double y);

// Text in pictures: tokens may contain any characters.

/// The text on one line: control characters become their pictures (U+240A for a line's end),
/// characters without one, or that XML forbids, become U+FFFD, stacks of combining marks are
/// truncated, and a text wider than `columns` ends in an ellipsis.
std::string label_text(std::string_view text, std::size_t columns);

// Text in pictures: its glyphs and their positions.

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
