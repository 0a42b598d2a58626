// Letters of pictures: fonts, and texts set in them.
#include "io/plot/text_line.hpp"
#include "io/text/utf8.hpp"
#include "tests/support/support.hpp"

namespace lettering_test {
namespace {

using namespace attn;
using namespace attn::io;

std::string utf8(char32_t code) {
    std::string text;
    append_utf8(text, code);
    return text;
}

/// A glyph as the pixels that it covers.
std::vector<std::uint8_t> picture_of(char32_t code) {
    return covered_by(glyph_of(code), 32, Turn::none, 0, 32).parts;
}

int total(const Coverage& coverage) {
    int sum = 0;
    for (std::uint8_t part : coverage.parts) sum += part;
    return sum;
}

/// The characters in logical order, as their own glyphs.
std::string seen(std::string_view text, const std::vector<char32_t>& candidates) {
    std::string order;
    for (const PlacedGlyph& placed : text_line(text).glyphs)
        for (char32_t candidate : candidates) {
            const Glyph glyph = glyph_of(candidate);
            if (glyph.font == placed.glyph.font && glyph.index == placed.glyph.index) {
                append_utf8(order, candidate);
                break;
            }
        }
    return order;
}

TEST_CASE("lettering: every script is drawn, each letter different from U+FFFD and from blank") {
    const std::vector<std::uint8_t> unknown = picture_of(replacement);
    // Latin, Greek, Cyrillic, Armenian, Hebrew, Arabic, Devanagari, Bengali, Tamil, Thai, Georgian,
    // Hangul, Ethiopic, Cherokee, Khmer, Mongolian, kana, ideographs, emoji, what tokenizers write.
    for (char32_t code : {U'g', U'Ω',  U'ж', U'Ա', U'ש', U'ع', U'क',  U'ক',  U'க', U'ก',
                          U'ა', U'한', U'አ', U'Ꭰ', U'ក', U'ᠠ', U'あ', U'語', U'😀', U'🧠',
                          U'Ġ', U'Ċ',  U'▁', U'→', U'“', U'…', U'␊',  U'⟩'}) {
        CAPTURE(utf8(code));
        const std::vector<std::uint8_t> picture = picture_of(code);
        CHECK(picture != unknown);
        CHECK(std::any_of(picture.begin(), picture.end(), [](int part) { return part > 200; }));
    }
    CHECK(picture_of(0x10ffff) == unknown);
    CHECK(total(covered_by(glyph_of(U' '), 32, Turn::none, 0, 0)) == 0);
}

TEST_CASE("lettering: each of Unicode's characters, turned each way, at any size") {
    constexpr char32_t last = 0x10ffff, every = 331;
    for (char32_t code = 0; code <= last; code += every) {
        const Glyph glyph = glyph_of(code);
        for (double size : {7.0, 24.0}) {
            const Coverage level = covered_by(glyph, size, Turn::none, 0.3, 0.6);
            const Coverage upright = covered_by(glyph, size, Turn::upright, 0.3, 0.6);
            CHECK(total(upright) <= total(level) * 1.1 + 300);
            CHECK(total(upright) >= total(level) * 0.9 - 300);
            CHECK(covered_by(glyph, size, Turn::slanted, 0.3, 0.6).width <= 10 * size);
        }
    }
}

TEST_CASE("lettering: a text is as wide as its letters, and is drawn at its position") {
    CHECK(text_line("").width == 0);
    CHECK(text_width("m", 20) == doctest::Approx(20 * glyph_of(U'm').advance));
    CHECK(text_width("mm", 10) == doctest::Approx(2 * text_width("m", 10)));
    CHECK(text_width("日本", 10) == doctest::Approx(20));
    CHECK(text_width("AV", 10) < text_width("A", 10) + text_width("V", 10));
    CHECK(text_line("e\xcc\x81").width == doctest::Approx(text_line("e").width).epsilon(0.2));
    const std::string word(10000, 'x');
    CHECK(text_width(word, 1) == doctest::Approx(10000 * text_width("x", 1)));
    CHECK(text_line("plain Ωж").is_plain);
    CHECK(!text_line("日").is_plain);
    CHECK(!text_line("ש").is_plain);
}

TEST_CASE("lettering: Hebrew and Arabic go to the left, numbers within them to the right") {
    CHECK(seen("אבג", {U'א', U'ב', U'ג'}) == "גבא");
    CHECK(seen("אב 12", {U'א', U'ב', U'1', U'2', U' '}) == "12 בא");
    CHECK(seen("a אב b", {U'א', U'ב', U'a', U'b', U' '}) == "a בא b");
    CHECK(seen("(א", {U'א', U'(', U')'}) == "א)");
    // Beh at a word's beginning, within it and at its end; lam and alef are one.
    CHECK(seen("ببب", {0xfe90, 0xfe91, 0xfe92, U'ب'}) ==
          utf8(0xfe90) + utf8(0xfe92) + utf8(0xfe91));
    CHECK(seen("لا", {0xfefb, U'ل', U'ا'}) == utf8(0xfefb));
    CHECK(text_line("لا").glyphs.size() == 1);
}

TEST_CASE("lettering: joiners and style selectors of emoji are not drawn") {
    CHECK(text_line("👩‍👧").glyphs.size() == 2);
    CHECK(text_line("❤️").glyphs.size() == 1);
}

}  // namespace
}  // namespace lettering_test
