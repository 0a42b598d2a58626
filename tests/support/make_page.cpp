// Writes the page of heat maps that tests/browser_test.py looks at: make_page FILE
// [large|odd|packed|walk]
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string_view>

#include "io/plot/picture.hpp"

using namespace attn;
using namespace attn::io;

namespace {

const IsMasked is_future = [](std::size_t, std::size_t, std::size_t query, std::size_t key) {
    return key > query;
};

HeatMap weights_map(const Report& report) {
    return make_heat_map(report, report.arrays[0], is_future, ColorScale::fixed, {});
}

std::vector<HeatMap> small_maps() {
    constexpr std::size_t batch = 2, heads = 3, tokens = 6;
    Report report;
    report.title_start = "multihead  ";
    report.query_labels = report.key_labels = {
        "Your", "journey", "<script>alert(1)</script>", "", "</script><!-- &", "step"};
    Array<float> weights = Array<float>::from_shape({heads, tokens, tokens}),
                 scores = Array<float>::from_shape({batch, heads, tokens, tokens});
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const std::size_t head = i / 36, query = i / 6 % 6, key = i % 6;
        if (head < heads)
            weights.data()[i] = static_cast<float>(100 * (head + 1) + 10 * query + key) / 1000;
        scores.data()[i] = static_cast<float>(head + query) - 1.5f * static_cast<float>(key);
    }
    weights(0, 0, 0) = 1;
    weights(0, 5, 5) = 0;
    weights(2, 5, 0) = std::numeric_limits<float>::quiet_NaN();
    report.arrays = {{"attention_weights", weights, {"heads", "q_len", "kv_len"}},
                     {"scores", scores, {"batch", "heads", "q_len", "kv_len"}}};
    return {weights_map(report),
            make_heat_map(report, report.arrays[1], is_future, ColorScale::fixed, {})};
}

/// More cells than are listed, each the largest of 2 x 2 elements.
std::vector<HeatMap> large_maps() {
    constexpr std::size_t tokens = 1030;
    Report report;
    Array<float> weights = Array<float>::from_shape({tokens, tokens});
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights.data()[i] = 0.5f * static_cast<float>(i / tokens);
    report.arrays = {{"attention_weights", weights, {"q_len", "kv_len"}}};
    return {weights_map(report)};
}

/// Every shape and every kind of number that a page may meet.
std::vector<HeatMap> odd_maps() {
    const IsMasked everything = [](auto...) { return true; }, nothing;
    const auto nan = std::numeric_limits<float>::quiet_NaN(),
               infinity = std::numeric_limits<float>::infinity();
    std::vector<HeatMap> maps;
    for (const std::size_t rows : {1u, 2u, 65u, 130u})
        for (const std::size_t columns : {1u, 3u, 64u, 300u}) {
            const std::size_t kind = maps.size();
            Report report;
            Array<float> weights = Array<float>::from_shape({2, 3, rows, columns});
            for (std::size_t i = 0; i < weights.size(); ++i)
                weights.data()[i] = kind % 6 == 1   ? nan
                                    : kind % 6 == 2 ? 0
                                    : kind % 6 == 3 ? infinity
                                    : kind % 6 == 4 ? -1e30f * static_cast<float>(i)
                                                    : 1 / static_cast<float>(i + 1);
            const bool is_score = kind % 3 == 1;
            report.arrays = {{is_score ? "scores" : "attention_weights",
                              weights,
                              {"batch", "heads", "q_len", "kv_len"}}};
            maps.push_back(make_heat_map(report, report.arrays[0],
                                         kind % 5 == 0   ? everything
                                         : kind % 5 == 1 ? is_future
                                                         : nothing,
                                         ColorScale::automatic, {}));
            if (kind % 2 == 0) maps.back().panel_axes.front() = {"layer", 2, {"early", "<b>late"}};
        }
    return maps;
}

/// More cells than are listed, of any bits, in both types; browser_test.py recomputes them.
template <class Float, class Word>
HeatMap map_of_any_bits(const IsMasked& is_masked) {
    constexpr std::size_t tokens = 330;
    constexpr unsigned shift = 8 * (sizeof(Word) - 4);
    constexpr std::array<std::uint32_t, 8> edges{0x80000000, 1,          0x007fffff, 0x00800000,
                                                 0x7f7fffff, 0xff7fffff, 0x7ff00000, 0xfff80000};
    Report report;
    Array<Float> values = Array<Float>::from_shape({1, tokens, tokens});
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto place = static_cast<std::uint32_t>(i);
        const std::uint32_t high =
            i % tokens < edges.size() ? edges[i % tokens] : place * 2654435761u;
        values.data()[i] = std::bit_cast<Float>(static_cast<Word>(
            static_cast<Word>(high) << shift | (shift > 0 ? place * 2246822519u : 0u)));
    }
    report.arrays = {{"scores", values, {"heads", "q_len", "kv_len"}}};
    return make_heat_map(report, report.arrays[0], is_masked, ColorScale::automatic, {});
}

std::vector<HeatMap> packed_maps() {
    return {map_of_any_bits<float, std::uint32_t>(is_future),
            map_of_any_bits<double, std::uint64_t>({})};
}

/// Two heads that share keys and values, with every array that a walk needs.
std::vector<HeatMap> walk_maps() {
    constexpr std::size_t heads = 2, tokens = 40, d = 8;
    Report report;
    const auto add = [&](const char* name, std::vector<std::size_t> shape,
                         std::vector<std::string_view> axes, float start) {
        Array<float> values = Array<float>::from_shape(shape);
        for (std::size_t i = 0; i < values.size(); ++i)
            values.data()[i] = start + static_cast<float>(i % 7) / 8;
        report.arrays.push_back({name, values, std::move(axes)});
    };
    add("queries", {heads, tokens, d}, {"heads", "q_len", "d_k"}, 1);
    add("keys", {1, tokens, d}, {"heads", "kv_len", "d_k"}, -2);
    add("values", {1, tokens, d}, {"heads", "kv_len", "d_v"}, 3);
    const auto add_scores = [&](const char* name, float start) {
        add(name, {heads, tokens, tokens}, {"heads", "q_len", "kv_len"}, start);
    };
    add_scores("scores", 0.5f);
    add_scores("scaled_scores", 0.25f);
    add_scores("capped_scores", 0.25f);
    add_scores("attention_weights", 0);
    add("head_outputs", {heads, tokens, d}, {"heads", "q_len", "d_v"}, -0.5f);
    std::vector<HeatMap> maps;
    for (const NamedArray& array : report.arrays)
        maps.push_back(make_heat_map(report, array, is_future, ColorScale::automatic, {}));
    return maps;
}

std::vector<HeatMap> maps_of(std::string_view kind) {
    if (kind == "large") return large_maps();
    if (kind == "odd") return odd_maps();
    if (kind == "packed") return packed_maps();
    return kind == "walk" ? walk_maps() : small_maps();
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) return 1;
    const std::string_view kind = count == 3 ? words[2] : "";
    TextOutput page;
    write_html(page, maps_of(kind));
    return (std::ofstream(words[1], std::ios::binary) << page.text()).good() ? 0 : 1;
}
