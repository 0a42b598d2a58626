#include "io/plot/text_line.hpp"

#include <algorithm>
#include <new>

#include <fribidi.h>

#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

/// Joins letters, or selects the style of one, and is invisible.
bool is_unseen(char32_t c) {
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x2060 && c <= 0x2064) ||
           (c >= 0xfe00 && c <= 0xfe0f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe0fff);
}

/// Hebrew is the first right-to-left block.
bool may_turn(char32_t c) {
    constexpr char32_t first = 0x590;
    return c >= first;
}

/// From the left, with Arabic letters in their contextual forms. Source: Unicode's bidirectional
/// algorithm, UAX #9, by GNU FriBidi.
std::u32string in_seen_order(const std::u32string& text) {
    const std::vector<FriBidiChar> written(text.begin(), text.end());
    std::vector<FriBidiChar> seen(written.size() + 1);  // and a 0
    FriBidiParType direction = FRIBIDI_PAR_ON;
    if (fribidi_log2vis(written.data(), static_cast<FriBidiStrIndex>(written.size()), &direction,
                        seen.data(), nullptr, nullptr, nullptr) == 0)
        throw std::bad_alloc();
    return {seen.begin(), std::ranges::find(seen, FriBidiChar{0})};
}

}  // namespace

TextLine text_line(std::string_view text) {
    std::u32string characters;
    characters.reserve(text.size());
    while (!text.empty()) characters += take_character(text);
    if (std::ranges::any_of(characters, may_turn)) characters = in_seen_order(characters);

    TextLine line;
    line.glyphs.reserve(characters.size());
    for (char32_t character : characters) {
        if (is_unseen(character)) continue;
        const Glyph glyph = glyph_of(character);
        if (!line.glyphs.empty()) line.width += kerning(line.glyphs.back().glyph, glyph);
        line.glyphs.push_back({glyph, line.width});
        line.width += glyph.advance;
        line.is_plain = line.is_plain && glyph.font == 0 && !may_turn(character);
    }
    return line;
}

double text_width(std::string_view text, double size) {
    return size * text_line(text).width;
}

std::string label_text(std::string_view text, std::size_t columns) {
    constexpr std::size_t max_marks = 8;  // per letter; some texts stack thousands
    std::string label, short_label;
    std::size_t width = 0, marks = 0;
    const std::string shown = printable(text);
    for (std::string_view rest = shown; !rest.empty();) {
        std::string one;
        append_utf8(one, take_character(rest));
        const std::size_t more = display_width(one);
        marks = more == 0 ? marks + 1 : 0;
        if (marks > max_marks) continue;
        width += more;
        if (width > columns) return short_label + "…";
        label += one;
        if (width < columns) short_label = label;
    }
    return label;
}

}  // namespace attn::io
