// Heat maps as SVG and PNG pictures and as a page, what the page does with it being in
// browser_test.py; letters of pictures: fonts, and texts set in them.
#include <png.h>

#include "io/plot/colors.hpp"
#include "io/plot/heat_map.hpp"
#include "io/plot/picture.hpp"
#include "io/plot/text_line.hpp"
#include "io/text/utf8.hpp"
#include "tests/support/support.hpp"

namespace plot_files_test {
namespace {

using namespace attn;
using namespace attn::io;
using test::count_of;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Weights that differ from cell to cell, (1, heads, tokens, tokens) and causal; small numbers in
/// the first column are equal to their neighbours.
HeatMap causal_map(std::size_t heads, const std::vector<std::string>& tokens, std::size_t size) {
    Array<float> values = Array<float>::from_shape({1, heads, size, size});
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t row = i / size % size, column = i % size;
        values.data()[i] =
            column > row ? 0 : static_cast<float>(i % 97) / 97 / static_cast<float>(1 + column);
    }
    Report report;
    report.title_start = "self  ";
    report.query_labels = report.key_labels = tokens;
    const NamedArray array{
        "attention_weights", std::move(values), {"batch", "heads", "q_len", "kv_len"}};
    return make_heat_map(
        report, array,
        [](std::size_t, std::size_t, std::size_t query, std::size_t key) { return key > query; },
        ColorScale::fixed, {});
}

HeatMap map_of(const std::string& name, AnyArray values, ColorScale scale = ColorScale::global) {
    return make_heat_map({}, {name, std::move(values), {"q_len", "kv_len"}}, nullptr, scale, {});
}

const std::vector<std::string> journey{"Your", "journey", "starts", "with", "one", "step"};

std::string svg_of(const HeatMap& map) {
    return test::written([&](Output& out) { write_svg(out, {map}); });
}

Pixels decoded(const std::string& png) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    REQUIRE(png_image_begin_read_from_memory(&image, png.data(), png.size()) != 0);
    image.format = PNG_FORMAT_RGB;
    Pixels pixels(image.width, image.height, {0, 0, 0});
    REQUIRE(png_image_finish_read(&image, nullptr, pixels.colors.data(), 0, nullptr) != 0);
    return pixels;
}

Pixels picture_of(const std::vector<HeatMap>& maps) {
    return decoded(test::written([&](Output& out) { write_png(out, maps); }));
}

/// Whether the cells of the map whose top is at y hold their colours in every corner, where no
/// number stands.
bool holds_map(Pixels& pixels, const HeatMap& map, std::size_t y) {
    const Layout layout = pixel_layout(map);
    for (std::size_t panel = 0; panel < map.panels.size(); ++panel) {
        const Box box = layout.panel_box(map, panel);
        for (std::size_t row = 0; row < map.rows; ++row)
            for (std::size_t column = 0; column < map.columns; ++column) {
                const auto left = static_cast<std::size_t>(box.x) +
                                  column * static_cast<std::size_t>(layout.cell_width);
                const auto top = y + static_cast<std::size_t>(box.y) +
                                 row * static_cast<std::size_t>(layout.cell_height);
                const auto right =
                    left + static_cast<std::size_t>(layout.cell_width - layout.gap) - 1;
                const auto bottom =
                    top + static_cast<std::size_t>(layout.cell_height - layout.gap) - 1;
                const Color color = RowColors(map, panel, row).of(column);
                for (std::size_t x : {left, right})
                    for (std::size_t edge : {top, bottom})
                        if (!(pixels.at(x, edge) == color)) return false;
            }
    }
    return true;
}

TEST_CASE("svg: the panels of large maps are images with a tooltip a row") {
    const std::string at_limit = svg_of(causal_map(1, {}, 256));
    CHECK(!test::contains(at_limit, "<image"));
    const std::string svg = svg_of(causal_map(2, {}, 257));
    CHECK(count_of(svg, "<image") == 2);
    CHECK(count_of(svg, "<title>query") == 2 * 257);
    CHECK(test::contains(svg, "<title>query 96: largest 0.35051546 at key 0</title>"));
    CHECK(svg.size() < 200000);
    // Many small ones too.
    CHECK(count_of(svg_of(causal_map(17, {}, 64)), "<image") == 17);
}

TEST_CASE("png: the pixels of a cell have its colour") {
    for (std::size_t heads : {1u, 3u})
        for (std::size_t size : {1u, 6u, 70u}) {
            const HeatMap map =
                causal_map(heads, size == 6 ? journey : std::vector<std::string>{}, size);
            Pixels pixels = picture_of({map});
            CAPTURE(heads);
            CAPTURE(size);
            CHECK(pixels.width == static_cast<std::size_t>(pixel_layout(map).width));
            CHECK(pixels.height == static_cast<std::size_t>(pixel_layout(map).height));
            CHECK(pixels.width < 2800);
            CHECK(pixels.height < 2800);
            CHECK(holds_map(pixels, map, 0));
            CHECK(pixels.at(0, 0) == background);
        }
}

TEST_CASE("png: maps below each other, with more colours than a palette holds") {
    Array<float> values = Array<float>::from_shape({30, 300});
    for (std::size_t i = 0; i < values.size(); ++i)
        values.data()[i] = static_cast<float>(std::sin(static_cast<double>(i)));
    values.data()[7] = not_a_number;
    const std::vector<HeatMap> maps{map_of("scores", values),
                                    map_of("attention_weights", values, ColorScale::row)};
    Pixels pixels = picture_of(maps);
    CHECK(holds_map(pixels, maps[0], 0));
    CHECK(holds_map(pixels, maps[1], static_cast<std::size_t>(pixel_layout(maps[0]).height)));
}

TEST_CASE("png: masked cells have a colour of their own") {
    for (bool is_diverging : {false, true})
        for (const Color& color : cell_colors(is_diverging)) {
            CHECK(!(color == masked_ground));
            CHECK(!(color == no_number));
        }
}

TEST_CASE("pictures: texts of labels") {
    CHECK(label_text("starts", 6) == "starts");
    CHECK(label_text("starts", 5) == "star…");
    CHECK(label_text("日本語", 6) == "日本語");
    CHECK(label_text("日本語", 5) == "日本…");
    CHECK(label_text("日本語", 4) == "日…");
    CHECK(label_text("a\tb\x80", 10) == "a\\x09b\\x80");
    CHECK(label_text("", 3) == "");
}

const IsMasked is_future = [](std::size_t, std::size_t, std::size_t query, std::size_t key) {
    return key > query;
};

HeatMap map_of(Array<float> values, std::vector<std::string> tokens = {}) {
    Report report;
    report.title_start = "self  ";
    report.query_labels = report.key_labels = std::move(tokens);
    const NamedArray array{"attention_weights", std::move(values), {"heads", "q_len", "kv_len"}};
    return make_heat_map(report, array, is_future, ColorScale::row, {});
}

Array<float> numbers(std::size_t heads, std::size_t tokens) {
    Array<float> values = Array<float>::from_shape({heads, tokens, tokens});
    for (std::size_t i = 0; i < values.size(); ++i)
        values.data()[i] = 0.1f * static_cast<float>(i % 977);
    return values;
}

std::string page_of(const std::vector<HeatMap>& maps) {
    return test::written([&](Output& out) { write_html(out, maps); });
}

nlohmann::json data_of(const std::string& page, const std::string& id) {
    return nlohmann::json::parse(test::script_of(page, id));
}

TEST_CASE("page: labels and titles are only text") {
    const std::vector<std::string> tokens{"</script><script>alert(1)</script>",
                                          "<!--",
                                          "\"'\\ & \n\t",
                                          "\u2028\u2029 \U0001F600",
                                          "",
                                          "\xff"};
    HeatMap map = map_of(numbers(1, 6), tokens);
    const std::size_t scripts = count_of(page_of({map_of(numbers(1, 6))}), "<script");
    map.heading = map.title = "a</title><script>{{data}}\n & b";
    map.note = map.panels[0].title = "</script><!--<script>";
    map.panel_axes[0].labels = {map.note};
    const std::string page = page_of({map});
    CHECK(count_of(page, "<script") == scripts);
    CHECK(count_of(page, "<!--") == 0);
    CHECK(count_of(page, "\u2028") == 0);
    CHECK(count_of(page, "a&lt;/title&gt;&lt;script&gt;{{data}}\\x0a &amp; b") == 2);

    const std::string text = test::script_of(page, "map-0");
    CHECK(text.find_first_of("<>&") == std::string::npos);
    const nlohmann::json data = nlohmann::json::parse(text);
    for (std::size_t i = 0; i < tokens.size(); ++i)
        CHECK(data["columns"]["labels"][i] == printable(tokens[i]));
    CHECK(data["note"] == map.note);
    CHECK(data["panels"][0]["title"] == map.note);
    CHECK(data["axes"][0]["labels"] == map.panel_axes[0].labels);
}

TEST_CASE("page: query rows of a cache keep their indices") {
    Report report;
    report.query_labels = report.key_labels = {"a", "b", "c", "d"};
    report.first_query = 2;
    const NamedArray array{
        "attention_weights", Array<float>::from_shape({2, 4}), {"q_len", "kv_len"}};
    const HeatMap map = make_heat_map(report, array, {}, ColorScale::fixed, {});
    const nlohmann::json data = data_of(page_of({map}), "map-0");
    CHECK(data["rows"]["first"] == 2);
    CHECK(data["rows"]["labels"] == nlohmann::json{"c", "d"});
    CHECK(data["columns"]["first"] == 0);
    CHECK(data["panels"][0]["mask"].is_null());
}

TEST_CASE("page: its colours are those of the other formats") {
    const nlohmann::json contents = data_of(page_of({map_of(numbers(1, 2))}), "contents");
    for (const bool is_diverging : {false, true}) {
        const nlohmann::json& colors = contents[is_diverging ? "red_blue" : "viridis"];
        const std::size_t last = colors.size() - 1;
        CHECK(last == (is_diverging ? 238 : 239));
        for (std::size_t i = 0; i <= last; ++i) {
            const double part = static_cast<double>(i) / static_cast<double>(last);
            const double position = is_diverging ? 2 * part - 1 : part;
            CHECK(colors[i] == hex_text(color_at(position, is_diverging)));
        }
    }
    CHECK(contents["viridis"][0] == "#440154");
    CHECK(contents["viridis"][239] == "#fde725");
    CHECK(contents["red_blue"][0] == "#053061");
    CHECK(contents["red_blue"][119] == "#f7f7f7");
    CHECK(contents["red_blue"][238] == "#67001f");
    CHECK(contents["scale"] == "row");
}

TEST_CASE("page: several arrays, nothing from elsewhere") {
    const std::string page = page_of({map_of(numbers(1, 2)), map_of(numbers(3, 4))});
    CHECK(data_of(page, "contents")["arrays"].size() == 2);
    CHECK(data_of(page, "map-1")["panels"].size() == 3);
    CHECK(count_of(page, "default-src 'none'; script-src 'sha256-") == 1);
    CHECK(count_of(page, "{{") == 0);
    for (const char* part : {"http:", "https:", "://", "\"//", "'//", "url(", "@import",
                             " src=", " href=", "fetch(", "XMLHttpRequest", "innerHTML", "unsafe"})
        CHECK_MESSAGE(count_of(page, part) == 0, part);
    // The ground of masked cells in the style is that of the other formats.
    CHECK(count_of(page, "--masked: " + hex_text(masked_ground)) == 1);
}

std::string utf8(char32_t code) {
    std::string text;
    append_utf8(text, code);
    return text;
}

/// A glyph as the pixels that it covers.
std::vector<std::uint8_t> picture_of(char32_t code) {
    return covered_by(glyph_of(code), 32, Turn::none, 0, 32).parts;
}

int total(const io::Coverage& coverage) {
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
            const auto level = covered_by(glyph, size, Turn::none, 0.3, 0.6);
            const auto upright = covered_by(glyph, size, Turn::upright, 0.3, 0.6);
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
}  // namespace plot_files_test
