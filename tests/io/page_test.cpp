// Heat maps as a page: what is written. What the page does with it: browser_test.py.
#include "io/plot/colors.hpp"
#include "io/plot/heat_map.hpp"
#include "io/plot/picture.hpp"
#include "io/text/utf8.hpp"
#include "tests/support/support.hpp"

namespace page_test {
namespace {

using namespace attn;
using namespace attn::io;
using test::count_of;

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

}  // namespace
}  // namespace page_test
