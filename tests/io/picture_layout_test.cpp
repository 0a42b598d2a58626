// The layout of pictures, over all sizes: nothing is cut off, nothing overlaps.
#include "io/plot/picture.hpp"
#include "io/plot/text_line.hpp"
#include "tests/support/support.hpp"

namespace picture_layout_test {
namespace {

using namespace attn;
using namespace attn::io;

/// What a text covers; of slanted ones the box around it.
struct Place {
    double left, top, right, bottom;
    std::string text;
    Turn turn;
    double size;
    bool is_in_cell;
};

/// Records the position of everything.
class Places : public Canvas {
public:
    explicit Places(const Layout& layout) : layout_(layout) {}

    void fill(const Box& box, const Color&) override { boxes.push_back(box); }
    void cells(const HeatMap&, std::size_t, const Box& box, int) override {
        boxes.push_back(box);
        panels.push_back(box);
    }
    void text(int x, int y, const std::string& text, const Lettering& how) override {
        const double size = how.size, width = text_width(text, size), half = 0.45 * size;
        const double start = how.anchor == Anchor::start    ? 0
                             : how.anchor == Anchor::middle ? width / 2
                                                            : width;
        Place place{x - start, y - half, x - start + width, y + half, text, how.turn, size, false};
        if (how.turn == Turn::upright)
            place = {x - half, y - (width - start), x + half, y + start, text, how.turn, size,
                     false};
        if (how.turn == Turn::slanted) {
            const double reach = std::sqrt(0.5) * (width + half);
            place = {x - reach, y - half, x + half, y + reach, text, how.turn, size, false};
        }
        place.is_in_cell = std::any_of(panels.begin(), panels.end(), [&](const Box& box) {
            return x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
        });
        if (place.is_in_cell) {
            CHECK(width <= layout_.cell_width - layout_.gap);
            CHECK(how.size <= layout_.cell_height);
        }
        if (!text.empty()) texts.push_back(place);
    }

    std::vector<Box> boxes, panels;
    std::vector<Place> texts;

private:
    const Layout& layout_;
};

bool lie_apart(const Place& a, const Place& b) {
    if (a.turn == Turn::slanted && b.turn == Turn::slanted && a.top == b.top)
        return std::abs(a.right - b.right) >= std::sqrt(2.0) * 0.9 * a.size;
    return a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
}

HeatMap map_of(std::size_t heads, std::size_t rows, std::size_t columns, const std::string& label,
               bool is_diverging) {
    Array<float> values = Array<float>::from_shape({heads, rows, columns});
    for (std::size_t i = 0; i < values.size(); ++i)
        values.data()[i] = static_cast<float>(std::sin(static_cast<double>(i)) / 2 + 0.5);
    Report report;
    report.title_start = "multihead  ";
    report.title_end = "  seed 123, d_out 768, scale 0.125, and more settings than fit on one line";
    const NamedArray array{is_diverging ? "scores" : "attention_weights",
                           std::move(values),
                           {"heads", "q_len", "kv_len"}};
    HeatMap map =
        make_heat_map(report, array, nullptr, ColorScale::automatic, picture_limits(array));
    if (label.empty()) return map;
    map.tokens_on_rows = map.tokens_on_columns = true;
    for (std::string& text : map.row_labels) text = label;
    for (std::string& text : map.column_labels) text = label;
    return map;
}

void check(const HeatMap& map, const PictureStyle& style) {
    const Layout layout = layout_of(map, style);
    Places places(layout);
    draw(places, map, layout, 0);
    for (const Box& box : places.boxes) {
        CHECK(box.x >= 0);
        CHECK(box.y >= 0);
        CHECK(box.x + box.width <= layout.width);
        CHECK(box.y + box.height <= layout.height);
    }
    for (const Place& text : places.texts) {
        CAPTURE(text.text);
        CHECK(text.left >= 0);
        CHECK(text.top >= 0);
        CHECK(text.right <= layout.width);
        CHECK(text.bottom <= layout.height);
        if (text.is_in_cell) continue;
        for (const Box& panel : places.panels)
            CHECK(lie_apart(text, {double(panel.x), double(panel.y), double(panel.x + panel.width),
                                   double(panel.y + panel.height), "", Turn::none, 0, false}));
    }
    std::vector<Place> texts = places.texts;
    std::sort(texts.begin(), texts.end(),
              [](const Place& a, const Place& b) { return a.left < b.left; });
    for (std::size_t i = 0; i < texts.size(); ++i)
        for (std::size_t k = i + 1; k < texts.size() && texts[k].left < texts[i].right; ++k) {
            CAPTURE(texts[i].text);
            CAPTURE(texts[k].text);
            CHECK(lie_apart(texts[i], texts[k]));
        }
}

TEST_CASE("pictures: at any size nothing is cut off and texts do not overlap") {
    test::Sample sample;
    for (std::size_t heads : {1u, 2u, 3u, 12u, 24u})
        for (std::size_t rows : {1u, 2u, 6u, 12u, 13u, 24u, 64u, 300u})
            for (std::size_t columns : {rows, std::size_t{1}, std::size_t{6}, 4 * rows + 9})
                for (const char* label :
                     {"", "on", "journey", "incomprehensibilities", "注意機構の言葉"}) {
                    if (heads * rows * columns > 100000 || !sample.takes()) continue;
                    CAPTURE(heads);
                    CAPTURE(rows);
                    CAPTURE(columns);
                    CAPTURE(label);
                    const HeatMap map = map_of(heads, rows, columns, label, rows % 2 == 0);
                    check(map, {12, 1200, 900});
                    check(map, {36, 2400, 1800});
                }
}

TEST_CASE("pictures: large ones keep to a palette, whatever is lettered") {
    HeatMap map = map_of(2, 64, 64, "wörter", false);
    map.panels[0].values[70] = std::nan("");
    map.panels[0].masked.assign(64 * 64, 0);
    map.panels[0].masked[63] = 1;
    const std::string png = test::written([&](Output& out) { write_png(out, {map}); });
    constexpr std::size_t color_type = 25;
    constexpr char palette = 3;
    CHECK(png.at(color_type) == palette);
}

}  // namespace
}  // namespace picture_layout_test
