// Heat maps as SVG and PNG pictures.
#include <png.h>

#include "io/plot/picture.hpp"
#include "io/plot/text_line.hpp"
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

}  // namespace
}  // namespace plot_files_test
