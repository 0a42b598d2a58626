// Which cells pictures show as masked: those that every head which is drawn blocks, and no others.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "io/text/utf8.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace masked_cells_test {

using namespace attn::test;
using nlohmann::json;

namespace {

/// A question whose masks differ by batch entry, head, query and key.
struct Question {
    std::size_t batch, heads, q_len, kv_len;
    std::vector<std::string> words;
    std::vector<bool> by_rules, masked;  // (batch, heads, q_len, kv_len)

    std::size_t at(std::size_t b, std::size_t h, std::size_t q, std::size_t k) const {
        return ((b * heads + h) * q_len + q) * kv_len + k;
    }
};

std::ptrdiff_t signed_of(std::size_t n) {
    return static_cast<std::ptrdiff_t>(n);
}

using Maps = std::vector<std::vector<bool>>;  // one for each matrix, row by row

/// The matrices that are drawn: of each head, or of all heads of an entry together.
Maps expected_maps(const Question& question, const std::vector<bool>& masked, bool average) {
    Maps maps;
    for (std::size_t b = 0; b < question.batch; ++b)
        for (std::size_t first = 0; first < question.heads; ++first) {
            if (average && first != 0) continue;
            maps.emplace_back();
            for (std::size_t q = 0; q < question.q_len; ++q)
                for (std::size_t k = 0; k < question.kv_len; ++k) {
                    bool is_masked = true;
                    for (std::size_t h = first; h < (average ? question.heads : first + 1); ++h)
                        is_masked = is_masked && masked[question.at(b, h, q, k)];
                    maps.back().push_back(is_masked);
                }
        }
    return maps;
}

class Generator {
public:
    explicit Generator(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t n) { return random_() % n; }
    bool chance(unsigned percent) { return below(100) < percent; }

    Question question() {
        const std::size_t batch = 1 + below(2);
        return question(batch, 2 + below(2), 2 + below(4), 2 + below(4), batch > 1 || chance(50));
    }

    /// Writes the operands of a question of sdpa, (batch, heads, len, 3) or (heads, len, 3).
    Question question(std::size_t batch, std::size_t heads, std::size_t q_len, std::size_t kv_len,
                      bool has_batch) {
        Question made{batch, heads, q_len, kv_len, {"sdpa"}, {}, {}};
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
        made.masked = made.by_rules;
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
    void block(const Question& made, std::vector<bool>& masked, Blocks blocks) {
        for (std::size_t b = 0; b < made.batch; ++b)
            for (std::size_t h = 0; h < made.heads; ++h)
                for (std::size_t q = 0; q < made.q_len; ++q)
                    for (std::size_t k = 0; k < made.kv_len; ++k)
                        if (blocks(b, h, q, k)) masked[made.at(b, h, q, k)] = true;
    }

    void add_rules(Question& made, bool has_batch) {
        std::vector<std::ptrdiff_t> lengths(made.batch, signed_of(made.kv_len));
        if (chance(25)) {
            made.words.insert(made.words.end(),
                              {"--kv-lengths", has_batch && made.batch > 1 ? "1,2" : "1"});
            for (std::size_t b = 0; b < made.batch; ++b) lengths[b] = signed_of(b + 1);
            block(made, made.by_rules,
                  [&](auto b, auto, auto, auto k) { return signed_of(k) >= lengths[b]; });
        }
        const bool is_causal = chance(30), has_window = chance(40), has_alibi = chance(20),
                   ends_with_keys = chance(40);
        if (is_causal || has_window || has_alibi)
            made.words.insert(made.words.end(),
                              {"--causal-align", ends_with_keys ? "bottom-right" : "top-left"});
        const auto distance = [&made, lengths, ends_with_keys](auto b, auto q, auto k) {
            const std::ptrdiff_t offset = ends_with_keys ? lengths[b] - signed_of(made.q_len) : 0;
            return signed_of(k) - signed_of(q) - offset;
        };
        if (is_causal) {
            made.words.emplace_back("--causal");
            block(made, made.by_rules,
                  [&](auto b, auto, auto q, auto k) { return distance(b, q, k) > 0; });
        }
        if (has_window) {
            const std::ptrdiff_t left = signed_of(below(4)) - 1, right = signed_of(below(4)) - 1;
            const bool is_one = right < 0 && chance(50);
            made.words.insert(
                made.words.end(),
                {"--window", std::to_string(left) + (is_one ? "" : "," + std::to_string(right))});
            block(made, made.by_rules, [&](auto b, auto, auto q, auto k) {
                const std::ptrdiff_t d = distance(b, q, k);
                return (left >= 0 && d < -left) || (right >= 0 && d > right);
            });
        }
        if (has_alibi) made.words.emplace_back("--alibi");
    }

    /// Of each head, or of all of them; boolean or additive.
    void add_mask(Question& made, bool has_batch) {
        const bool is_additive = chance(40), keeps = chance(50), shares = chance(20);
        std::vector<bool> random(made.masked.size());
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
        block(made, made.masked, [&](auto b, auto h, auto q, auto k) {
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
        if (text.substr(colon + 2) != "masked") continue;
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

/// Matrices without labels, side by side, each below its line of keys.
Maps maps_of_terminal(const std::string& text, std::size_t rows, std::size_t columns) {
    Maps maps;
    std::vector<std::size_t> places;  // of the cells, key by key
    for (const std::string& line : lines_of(text)) {
        std::u32string letters;
        for (std::string_view rest = line; !rest.empty();)
            letters += attn::io::take_character(rest);
        const bool is_keys =
            line.starts_with("  ") && line.find_first_not_of(" 0123456789") == std::string::npos;
        // A row of masked cells is its label alone.
        const bool is_row = !line.empty() && line[0] >= '0' && line[0] <= '9' &&
                            (line.size() == 1 || line[1] == ' ');
        if (is_keys) {
            places.clear();
            for (std::size_t at = 0; at < line.size(); ++at)
                if (line[at] != ' ') places.push_back(at);
            REQUIRE(places.size() % columns == 0);
            maps.resize(maps.size() + places.size() / columns,
                        std::vector<bool>(rows * columns, true));
        } else if (!is_row) {
            places.clear();
        }
        if (!is_row) continue;
        const auto row = static_cast<std::size_t>(line[0] - '0');
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::size_t map = maps.size() - places.size() / columns + i / columns;
            const bool is_blank =
                letters.substr(std::min(places[i], letters.size()), 3).find_first_not_of(U' ') ==
                std::u32string::npos;
            maps[map][row * columns + i % columns] = is_blank;
        }
    }
    return maps;
}

bool is_zero_where_masked(const json& weights, const std::vector<bool>& masked) {
    const std::vector<double> numbers = flat(weights);
    REQUIRE(numbers.size() == masked.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
        if (masked[i] && numbers[i] != 0) return false;
    return true;
}

}  // namespace

TEST_CASE("pictures: masked cells are those that every head drawn masks") {
    scratch_folder();
    std::size_t pictures = 0, partly = 0;
    for (unsigned seed = 0; seed < cases(40); ++seed) {
        CAPTURE(seed);
        Generator generator(seed);
        const Question question = generator.question();
        for (const bool average : {false, true})
            for (const bool emits_mask : {false, true}) {
                CAPTURE(average);
                CAPTURE(emits_mask);
                Maps expected = expected_maps(question, question.masked, average);
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
                REQUIRE((maps_of_terminal(run({"--heatmap", "--format", "none"}), question.q_len,
                                          question.kv_len) == expected));
                for (std::size_t i = 0; average && i < question.masked.size(); ++i) {
                    const std::size_t cells = question.q_len * question.kv_len;
                    const bool in_all = expected[i / cells / question.heads][i % cells];
                    partly += question.masked[i] && !in_all ? 1U : 0U;
                }
                // A picture of a result without its mask does not claim more than the result
                // records.
                if (!emits_mask) expected = expected_maps(question, question.by_rules, average);
                const json weights = json::parse(read_text("result.json"))["attention_weights"];
                std::vector<bool> all;
                for (const auto& map : expected) all.insert(all.end(), map.begin(), map.end());
                REQUIRE(is_zero_where_masked(weights, all));
                for (const char* result : {"result.json", "result.npz"}) {
                    CAPTURE(std::string(result));
                    REQUIRE(run_attn({"plot", result, "-o", "map.svg"}).code == 0);
                    REQUIRE(svg() == expected);
                    REQUIRE(run_attn({"plot", result, "-o", "map.html"}).code == 0);
                    REQUIRE(maps_of_page(read_text("map.html")) == expected);
                    REQUIRE((maps_of_terminal(run_attn({"plot", result}).out, question.q_len,
                                              question.kv_len) == expected));
                    if (average) continue;
                    // Some of the heads, in another order.
                    const Outcome two = run_attn({"plot", result, "--head", "1,0"});
                    Maps turned;
                    for (std::size_t b = 0; b < question.batch; ++b)
                        for (const std::size_t head : {1U, 0U})
                            turned.push_back(expected[b * question.heads + head]);
                    REQUIRE((maps_of_terminal(two.out, question.q_len, question.kv_len) == turned));
                }
                pictures += average ? 9U : 11U;
            }
    }
    CHECK(pictures == 40 * cases(40));
    CHECK(partly > cases(40));  // masked by one head, and not by another
}

TEST_CASE("pictures: in layers each result masks its own cells") {
    scratch_folder();
    std::size_t different = 0;
    for (unsigned seed = 0; seed < cases(30); ++seed) {
        CAPTURE(seed);
        Generator generator(1000 + seed);
        const std::size_t count = 2 + generator.below(2), batch = 1 + generator.below(2),
                          heads = 2 + generator.below(2), q_len = 2 + generator.below(4),
                          kv_len = 2 + generator.below(4);
        const bool has_batch = batch > 1 || generator.chance(50), average = generator.chance(50),
                   emits_mask = generator.chance(50);
        CAPTURE(average);
        CAPTURE(emits_mask);
        Maps expected;
        std::vector<std::string> plot{"plot"};
        std::string lines;
        for (std::size_t layer = 0; layer < count; ++layer) {
            const Question question = generator.question(batch, heads, q_len, kv_len, has_batch);
            std::vector<std::string> words = question.words;
            if (average) words.emplace_back("--average-heads");
            words.insert(words.end(),
                         {"--emit", emits_mask ? "attention_weights,mask" : "attention_weights"});
            const std::string name = "layer" + std::to_string(layer);
            for (const char* suffix : {".json", ".npz", ".safetensors"}) {
                std::vector<std::string> all = words;
                all.insert(all.end(), {"-o", name + suffix});
                REQUIRE(run_attn(all).code == 0);
            }
            lines += read_text(name + ".json");
            static constexpr const char* suffixes[] = {".json", ".npz", ".safetensors"};
            plot.push_back(name + suffixes[generator.below(3)]);
            const Maps maps =
                expected_maps(question, emits_mask ? question.masked : question.by_rules, average);
            different +=
                !expected.empty() && !std::equal(maps.begin(), maps.end(), expected.begin());
            expected.insert(expected.end(), maps.begin(), maps.end());
        }
        write_text("lines.ndjson", lines);
        for (const std::vector<std::string>& words : {plot, {"plot", "lines.ndjson"}}) {
            const auto draw = [&](const std::vector<std::string>& more) {
                std::vector<std::string> all = words;
                all.insert(all.end(), more.begin(), more.end());
                const Outcome outcome = run_attn(all);
                CAPTURE(outcome.err);
                REQUIRE(outcome.code == 0);
                return outcome.out;
            };
            REQUIRE((maps_of_terminal(draw({}), q_len, kv_len) == expected));
            draw({"-o", "map.svg"});
            REQUIRE(maps_of_svg(read_text("map.svg"), q_len, kv_len) == expected);
            draw({"-o", "map.html"});
            REQUIRE(maps_of_page(read_text("map.html")) == expected);
        }
    }
    CHECK(different > cases(30) / 2);
}

}  // namespace masked_cells_test
