// Writes the page of heat maps that tests/browser_test.py looks at: make_page FILE [large|odd]
#include <fstream>
#include <limits>
#include <string_view>

#include "io/plot/html.hpp"

using namespace attn;
using namespace attn::io;

namespace {

const IsBlocked is_future = [](std::size_t, std::size_t, std::size_t query, std::size_t key) {
    return key > query;
};

HeatMap weights_map(const Report& report) {
    return make_heat_map(report, report.arrays[0], is_future, ColorScale::fixed, {});
}

std::vector<HeatMap> small_maps() {
    constexpr std::size_t batch = 2, heads = 3, tokens = 6;
    Report report;
    report.title_start = "multihead  ";
    report.query_labels = report.key_labels = {"Your", "journey", "<script>alert(1)</script>", "", "</script><!-- &", "step"};
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
    const IsBlocked everything = [](auto...) { return true; }, nothing;
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
            if (kind % 2 == 0) maps.back().panel_axes.front().name = "layer";
        }
    return maps;
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) return 1;
    const std::string_view kind = count == 3 ? words[2] : "";
    TextOutput page;
    write_html(page, kind == "large" ? large_maps() : kind == "odd" ? odd_maps() : small_maps());
    return (std::ofstream(words[1], std::ios::binary) << page.text()).good() ? 0 : 1;
}
