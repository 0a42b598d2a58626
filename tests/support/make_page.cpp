// Writes the page of heat maps that tests/browser_test.py looks at: make_page FILE
#include <fstream>
#include <limits>

#include "io/plot/html.hpp"

using namespace attn;
using namespace attn::io;

int main(int count, char** words) {
    if (count != 2) return 1;
    constexpr std::size_t heads = 3, tokens = 6;
    Report report;
    report.head = {{"mode", R"("multihead")"}};
    report.tokens = {"Your", "journey", "<script>alert(1)</script>", "", "</script><!-- &", "step"};
    Array<float> weights = Array<float>::from_shape({heads, tokens, tokens}), scores = weights;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const std::size_t head = i / 36, query = i / 6 % 6, key = i % 6;
        weights.data()[i] = static_cast<float>(100 * (head + 1) + 10 * query + key) / 1000;
        scores.data()[i] = static_cast<float>(head + query) - 1.5f * static_cast<float>(key);
    }
    weights(0, 0, 0) = 1;
    weights(0, 5, 5) = 0;
    weights(2, 5, 0) = std::numeric_limits<float>::quiet_NaN();
    report.arrays = {{"attention_weights", weights, {"heads", "q_len", "kv_len"}},
                     {"scores", scores, {"heads", "q_len", "kv_len"}}};
    const IsBlocked is_future = [](std::size_t, std::size_t, std::size_t query, std::size_t key) {
        return key > query;
    };
    std::vector<HeatMap> maps;
    for (const NamedArray& array : report.arrays)
        maps.push_back(make_heat_map(report, array, is_future, ColorScale::fixed, {}));
    TextOutput page;
    write_html(page, maps);
    return (std::ofstream(words[1], std::ios::binary) << page.text()).good() ? 0 : 1;
}
