// Which cells pictures show as blocked: those that every head which is drawn blocks, and no others.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <random>
#include <string>
#include <vector>

#include "tests/support/requests.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

using namespace attn::test;
using nlohmann::json;

namespace {

/// A question whose masks differ by batch entry, head, query and key.
struct Question {
    std::size_t batch, heads, q_len, kv_len;
    std::vector<std::string> words;
    std::vector<bool> by_rules, blocked;  // (batch, heads, q_len, kv_len)

    std::size_t at(std::size_t b, std::size_t h, std::size_t q, std::size_t k) const {
        return ((b * heads + h) * q_len + q) * kv_len + k;
    }
};

using Maps = std::vector<std::vector<bool>>;  // one for each matrix, row by row

/// The matrices that are drawn: of each head, or of all heads of an entry together.
Maps expected_maps(const Question& question, const std::vector<bool>& blocked, bool average) {
    Maps maps;
    for (std::size_t b = 0; b < question.batch; ++b)
        for (std::size_t first = 0; first < question.heads; ++first) {
            if (average && first != 0) continue;
            maps.emplace_back();
            for (std::size_t q = 0; q < question.q_len; ++q)
                for (std::size_t k = 0; k < question.kv_len; ++k) {
                    bool is_blocked = true;
                    for (std::size_t h = first; h < (average ? question.heads : first + 1); ++h)
                        is_blocked = is_blocked && blocked[question.at(b, h, q, k)];
                    maps.back().push_back(is_blocked);
                }
        }
    return maps;
}

class Generator {
public:
    explicit Generator(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t n) { return random_() % n; }
    bool chance(unsigned percent) { return below(100) < percent; }

    /// Writes the operands of a question of sdpa, (batch, heads, len, 3) or (heads, len, 3).
    Question question() {
        Question made{1 + below(2), 2 + below(2), 2 + below(4), 2 + below(4), {"sdpa"}, {}, {}};
        const bool has_batch = made.batch > 1 || chance(50);
        for (const char* name : {"query", "key", "value"}) {
            const std::size_t length = name == std::string("query") ? made.q_len : made.kv_len;
            json array = json::array();
            for (std::size_t b = 0; b < made.batch; ++b)
                array.push_back(numbers(made.heads, length));
            write_text(std::string(name) + ".json", (has_batch ? array : array[0]).dump());
            made.words.insert(made.words.end(),
                              {"--" + std::string(name), std::string(name) + ".json"});
        }
        made.by_rules.assign(made.batch * made.heads * made.q_len * made.kv_len, false);
        add_rules(made, has_batch);
        made.blocked = made.by_rules;
        if (chance(80)) add_mask(made, has_batch);
        return made;
    }

private:
    json numbers(std::size_t heads, std::size_t length) {
        json all = json::array();
        for (std::size_t h = 0; h < heads; ++h) {
            json rows = json::array();
            for (std::size_t i = 0; i < length; ++i) {
                json row = json::array();
                for (int d = 0; d < 3; ++d) row.push_back(static_cast<double>(below(200)) / 100);
                rows.push_back(row);
            }
            all.push_back(rows);
        }
        return all;
    }

    template <class Blocks>
    void block(const Question& made, std::vector<bool>& blocked, Blocks blocks) {
        for (std::size_t b = 0; b < made.batch; ++b)
            for (std::size_t h = 0; h < made.heads; ++h)
                for (std::size_t q = 0; q < made.q_len; ++q)
                    for (std::size_t k = 0; k < made.kv_len; ++k)
                        if (blocks(b, h, q, k)) blocked[made.at(b, h, q, k)] = true;
    }

    void add_rules(Question& made, bool has_batch) {
        if (chance(30)) {
            made.words.insert(made.words.end(), {"--causal", "--causal-align", "top-left"});
            block(made, made.by_rules, [](auto, auto, auto q, auto k) { return k > q; });
        }
        if (chance(25)) {
            made.words.insert(made.words.end(),
                              {"--kv-lengths", has_batch && made.batch > 1 ? "1,2" : "1"});
            block(made, made.by_rules, [](auto b, auto, auto, auto k) { return k > b; });
        }
        if (chance(20)) made.words.emplace_back("--alibi");
    }

    /// Of each head, or of all of them; boolean or additive.
    void add_mask(Question& made, bool has_batch) {
        const bool is_additive = chance(40), keeps = chance(50), shares = chance(20);
        std::vector<bool> random(made.blocked.size());
        for (auto bit : random) bit = chance(45);
        json mask = json::array();
        for (std::size_t b = 0; b < made.batch; ++b) {
            mask.push_back(json::array());
            for (std::size_t h = 0; h < (shares ? 1 : made.heads); ++h) {
                mask.back().push_back(json::array());
                for (std::size_t q = 0; q < made.q_len; ++q) {
                    json row = json::array();
                    for (std::size_t k = 0; k < made.kv_len; ++k) {
                        const bool blocks = random[made.at(b, h, q, k)];
                        if (is_additive)
                            row.push_back(blocks ? json("-Infinity") : json(0.25));
                        else
                            row.push_back(blocks != keeps);
                    }
                    mask.back().back().push_back(row);
                }
            }
        }
        write_text("mask.json", (has_batch ? mask : mask[0]).dump());
        made.words.insert(made.words.end(), {"--mask", "mask.json"});
        if (!is_additive)
            made.words.insert(made.words.end(), {"--mask-true", keeps ? "keep" : "drop"});
        block(made, made.blocked, [&](auto b, auto h, auto q, auto k) {
            return random[made.at(b, shares ? 0 : h, q, k)];
        });
    }

    std::mt19937 random_;
};

/// "key 1 to 3" or "key 2".
std::pair<std::size_t, std::size_t> ends_of(const std::string& text) {
    const std::size_t first = std::stoul(text.substr(text.find(' ') + 1)), to = text.find(" to ");
    return {first, to == std::string::npos ? first : std::stoul(text.substr(to + 4))};
}

/// By the tooltips, matrix after matrix. A number is not 0 if `nonzero` is set.
Maps maps_of_svg(const std::string& svg, std::size_t rows, std::size_t columns) {
    Maps maps;
    std::size_t cells = 0;
    const std::string open = "<title>query ";
    for (std::size_t at = svg.find(open); at != std::string::npos; at = svg.find(open, at + 1)) {
        const std::string text = svg.substr(at + 7, svg.find('<', at + 1) - at - 7);
        const std::size_t comma = text.find(", "), colon = text.find(": ");
        const std::size_t row = ends_of(text.substr(0, comma)).first;
        const auto [first, last] = ends_of(text.substr(comma + 2, colon - comma - 2));
        if (cells++, maps.empty() || (row == 0 && first == 0))
            maps.emplace_back(rows * columns, false);
        if (text.substr(colon + 2) != "blocked") continue;
        for (std::size_t column = first; column <= last; ++column)
            maps.back()[row * columns + column] = true;
    }
    REQUIRE(cells != 0);
    return maps;
}

Maps maps_of_page(const std::string& page) {
    const std::string open = "id=\"map-0\">";
    const std::size_t at = page.find(open) + open.size();
    REQUIRE(page.find(open) != std::string::npos);
    const json map = json::parse(page.substr(at, page.find("</script>", at) - at));
    Maps maps;
    for (const json& panel : map["panels"]) {
        maps.emplace_back(panel["values"].size(), false);
        if (panel["mask"].is_null()) continue;
        const json mask = map["masks"][panel["mask"].get<std::size_t>()];
        for (std::size_t i = 0; i < mask.size(); ++i) maps.back()[i] = mask[i] != 0;
    }
    return maps;
}

/// Of one matrix without labels, each cell three columns behind the row's number.
Maps maps_of_terminal(const std::string& text, std::size_t rows, std::size_t columns) {
    Maps maps(1, std::vector<bool>(rows * columns, true));
    for (const std::string& line : lines_of(text)) {
        if (line.size() < 2 || line[0] < '0' || line[1] != ' ') continue;
        const auto row = static_cast<std::size_t>(line[0] - '0');
        if (row >= rows || line.find("0.") != std::string::npos) continue;
        std::size_t column = 0;
        for (std::size_t at = 1; at < line.size(); ++at) {
            if ((static_cast<unsigned char>(line[at]) & 0xc0) == 0x80) continue;
            ++column;
            const bool is_cell = column >= 2 && (column - 2) / 3 < columns;
            if (is_cell && line[at] != ' ') maps[0][row * columns + (column - 2) / 3] = false;
        }
    }
    return maps;
}

bool is_zero_where_blocked(const json& weights, const std::vector<bool>& blocked) {
    const std::vector<double> numbers = flat(weights);
    REQUIRE(numbers.size() == blocked.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
        if (blocked[i] && numbers[i] != 0) return false;
    return true;
}

}  // namespace

TEST_CASE("pictures: blocked cells are those that every head drawn blocks") {
    scratch_folder();
    std::size_t pictures = 0, partly = 0;
    for (unsigned seed = 0; seed < cases(150); ++seed) {
        CAPTURE(seed);
        Generator generator(seed);
        const Question question = generator.question();
        for (const bool average : {false, true})
            for (const bool emits_mask : {false, true}) {
                CAPTURE(average);
                CAPTURE(emits_mask);
                Maps expected = expected_maps(question, question.blocked, average);
                std::vector<std::string> words = question.words;
                if (average) words.emplace_back("--average-heads");
                words.insert(words.end(), {"--emit", emits_mask ? "attention_weights,mask"
                                                                : "attention_weights"});
                const auto run = [&](std::vector<std::string> more) {
                    std::vector<std::string> all = words;
                    all.insert(all.end(), more.begin(), more.end());
                    const Outcome outcome = run_attn(all);
                    CAPTURE(outcome.err);
                    REQUIRE(outcome.code == 0);
                    return outcome.out;
                };
                const auto svg = [&] {
                    return maps_of_svg(read_text("map.svg"), question.q_len, question.kv_len);
                };
                run({"--plot", "map.svg", "-o", "result.json"});
                REQUIRE(svg() == expected);
                run({"--plot", "map.html", "-o", "result.npz"});
                REQUIRE(maps_of_page(read_text("map.html")) == expected);
                if (expected.size() == 1)
                    REQUIRE((maps_of_terminal(run({"--heatmap", "--format", "none"}),
                                              question.q_len, question.kv_len) == expected));
                for (std::size_t i = 0; average && i < question.blocked.size(); ++i) {
                    const std::size_t cells = question.q_len * question.kv_len;
                    const bool in_all = expected[i / cells / question.heads][i % cells];
                    partly += question.blocked[i] && !in_all ? 1U : 0U;
                }
                // A picture of a result without its mask does not claim more than the result
                // records.
                if (!emits_mask) expected = expected_maps(question, question.by_rules, average);
                const json weights = json::parse(read_text("result.json"))["attention_weights"];
                std::vector<bool> all;
                for (const auto& map : expected) all.insert(all.end(), map.begin(), map.end());
                REQUIRE(is_zero_where_blocked(weights, all));
                for (const char* result : {"result.json", "result.npz"}) {
                    CAPTURE(std::string(result));
                    REQUIRE(run_attn({"plot", result, "-o", "map.svg"}).code == 0);
                    REQUIRE(svg() == expected);
                    REQUIRE(run_attn({"plot", result, "-o", "map.html"}).code == 0);
                    REQUIRE(maps_of_page(read_text("map.html")) == expected);
                }
                pictures += expected.size() == 1 ? 7U : 6U;
            }
    }
    CHECK(pictures >= 24 * cases(150));
    CHECK(partly > cases(150));  // blocked by one head, and not by another
}
