// Which cells pictures show as masked: those that every head which is drawn blocks, and no others.
#include "tests/support/answers.hpp"

namespace masked_cells_test {
namespace {

using namespace attn::test;
using nlohmann::json;

using Maps = std::vector<std::vector<bool>>;  // one for each matrix, row by row

struct Sizes {
    std::size_t batch, heads, q_len, kv_len;
};

/// Questions of sdpa whose masks differ by batch entry, head, query and key.
class Generator : public Dice {
public:
    using Dice::Dice;

    Sizes sizes() { return {1 + below(2), 2 + below(2), 2 + below(4), 2 + below(4)}; }

    /// Writes the operands, and the words of a question: without and with a mask of its own.
    void ask(const Sizes& n) {
        by_rules = {"sdpa"};
        for (const std::string name : {"query", "key", "value"}) {
            const std::size_t rows = name == "query" ? n.q_len : n.kv_len;
            const auto number = [&] { return json(static_cast<double>(below(200)) / 100); };
            write_text(name + ".json", nested({n.batch, n.heads, rows, 3}, number).dump());
            by_rules = by_rules + Words{"--" + name, name + ".json"};
        }
        const auto sometimes = [&](unsigned percent, const Words& more) {
            if (chance(percent)) by_rules = by_rules + more;
        };
        const auto side = [&] { return std::to_string(static_cast<int>(below(4)) - 1); };
        sometimes(25, {"--kv-lengths", n.batch > 1 ? "1,2" : "1"});
        const std::size_t words = by_rules.size();
        sometimes(20, {"--alibi"});
        sometimes(30, {"--causal"});
        sometimes(40, {"--window", chance(20) ? side() : side() + "," + side()});
        if (by_rules.size() > words)
            by_rules = by_rules + Words{"--causal-align", chance(40) ? "bottom-right" : "top-left"};
        masked = by_rules;
        if (!chance(80)) return;
        const bool is_additive = chance(40);
        const auto element = [&]() -> json {
            if (!is_additive) return chance(55);
            return chance(45) ? json("-Infinity") : json(0.25);
        };
        const std::size_t heads = chance(20) ? 1 : n.heads;
        write_text("mask.json", nested({n.batch, heads, n.q_len, n.kv_len}, element).dump());
        masked = masked + Words{"--mask", "mask.json"};
        if (!is_additive) masked = masked + Words{"--mask-true", chance(50) ? "keep" : "drop"};
    }

    Words by_rules, masked;
};

/// The matrices that are drawn, by the array `mask`: of each head, or of all heads of an entry.
Maps expected_maps(const Words& question, const Sizes& n, bool average) {
    const std::vector<double> keeps = flat(result_of(question + Words{"--emit", "mask"})["mask"]);
    const std::size_t cells = n.q_len * n.kv_len, together = average ? n.heads : 1;
    REQUIRE(keeps.size() == n.batch * n.heads * cells);
    Maps maps(n.batch * n.heads / together, std::vector<bool>(cells, true));
    for (std::size_t i = 0; i < keeps.size(); ++i)
        if (keeps[i] != 0) maps[i / cells / together][i % cells] = false;
    return maps;
}

/// By the tooltips, matrix after matrix.
Maps maps_of_svg(const std::string& svg, const Sizes& n) {
    Maps maps;
    const std::string open = "<title>query ";
    for (std::size_t at = svg.find(open); at != std::string::npos; at = svg.find(open, at + 1)) {
        const std::string text = svg.substr(at + 7, svg.find('<', at + 1) - at - 7);
        const std::size_t comma = text.find(", "), colon = text.find(": ");
        const std::size_t row = range_in(text.substr(0, comma)).first;
        const auto [first, last] = range_in(text.substr(comma + 2, colon - comma - 2));
        if (maps.empty() || (row == 0 && first == 0)) maps.emplace_back(n.q_len * n.kv_len, false);
        if (text.substr(colon + 2) != "masked") continue;
        for (std::size_t column = first; column <= last; ++column)
            maps.back()[row * n.kv_len + column] = true;
    }
    return maps;
}

Maps maps_of_page(const std::string& page) {
    const json map = json::parse(script_of(page, "map-0"));
    Maps maps;
    for (const json& panel : map["panels"]) {
        maps.emplace_back(panel["values"].size(), false);
        if (panel["mask"].is_null()) continue;
        const json mask = map["masks"][panel["mask"].get<std::size_t>()];
        for (std::size_t i = 0; i < mask.size(); ++i) maps.back()[i] = mask[i] != 0;
    }
    return maps;
}

/// A command that draws, with the flag that names the file. That a masked cell is blank on a
/// terminal and in a PNG: terminal_map_test.cpp and plot_files_test.cpp.
void check_pictures(const Words& command, const std::string& flag, const Maps& expected,
                    const Sizes& n) {
    output_of(command + Words{flag, "map.svg"});
    REQUIRE(maps_of_svg(read_text("map.svg"), n) == expected);
    output_of(command + Words{flag, "map.html"});
    REQUIRE(maps_of_page(read_text("map.html")) == expected);
}

TEST_CASE("pictures: masked cells are those that every head drawn masks") {
    for (unsigned seed = 0; seed < cases(12); ++seed) {
        CAPTURE(seed);
        Generator generator(seed);
        const Sizes n = generator.sizes();
        generator.ask(n);
        for (const bool average : {false, true})
            for (const std::string emit : {"attention_weights", "attention_weights,mask"}) {
                CAPTURE(average);
                CAPTURE(emit);
                Words words = generator.masked + Words{"--emit", emit};
                if (average) words.emplace_back("--average-heads");
                Maps expected = expected_maps(generator.masked, n, average);
                check_pictures(words + Words{"--format", "none"}, "--plot", expected, n);
                // A result without its mask does not claim more than it records.
                if (emit == "attention_weights")
                    expected = expected_maps(generator.by_rules, n, average);
                for (const std::string result : {"result.json", "result.npz"}) {
                    CAPTURE(result);
                    output_of(words + Words{"-o", result});
                    check_pictures({"plot", result}, "-o", expected, n);
                    if (average) continue;
                    // Some of the heads, in another order.
                    Maps turned;
                    for (std::size_t b = 0; b < n.batch; ++b)
                        for (const std::size_t head : {1U, 0U})
                            turned.push_back(expected[b * n.heads + head]);
                    check_pictures({"plot", result, "--head", "1,0"}, "-o", turned, n);
                }
            }
    }
}

TEST_CASE("pictures: in layers each result masks its own cells") {
    for (unsigned seed = 0; seed < cases(15); ++seed) {
        CAPTURE(seed);
        Generator generator(1000 + seed);
        const Sizes n = generator.sizes();
        const bool average = generator.chance(50), emits_mask = generator.chance(50);
        Maps expected;
        Words plot{"plot"};
        std::string lines;
        for (std::size_t layer = 0; layer < 2 + seed % 2; ++layer) {
            generator.ask(n);
            Words words = generator.masked + Words{"--emit", emits_mask ? "attention_weights,mask"
                                                                        : "attention_weights"};
            if (average) words.emplace_back("--average-heads");
            const std::string file = "layer" + std::to_string(layer);
            const std::string suffixes[] = {".json", ".npz", ".safetensors"};
            for (const std::string& suffix : suffixes)
                output_of(words + Words{"-o", file + suffix});
            lines += read_text(file + ".json");
            plot.push_back(file + suffixes[generator.below(3)]);
            for (const auto& map :
                 expected_maps(emits_mask ? generator.masked : generator.by_rules, n, average))
                expected.push_back(map);
        }
        write_text("lines.ndjson", lines);
        for (const Words& words : {plot, {"plot", "lines.ndjson"}})
            check_pictures(words, "-o", expected, n);
    }
}

}  // namespace
}  // namespace masked_cells_test
