// What is masked: the cells that pictures show so, those that every head which is drawn blocks, and
// no others; dots in tables, by the mask and never by the number; tokens of an input that a mask
// hides from every query, which may hold NaN and infinities.
#include <cstdio>

#include "tests/support/answers.hpp"
#include "tests/support/random_question.hpp"

namespace masked_test {
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

TEST_CASE("inputs: NaN in hidden tokens changes no other row, elsewhere it is an error") {
    constexpr std::size_t entries = 2, tokens = 5;
    const std::vector<std::size_t> valid{2, 4};  // what follows in an entry is padding
    const auto rows = [&](int seed) {
        return nested({entries, tokens, 4}, [&] { return (seed = seed * 7 % 31) / 16.0 - 1; });
    };
    const json x = rows(1), context = rows(5);
    std::size_t number = 0;
    for (const std::string mode : {"self", "causal", "multihead", "cross"})
        for (const std::string way :
             {"key_padding_mask", "mask", "kv_lengths", "additive key_padding_mask", "none"})
            for (const std::string source : {"inputs", "context"})
                for (const std::size_t token : {std::size_t{0}, std::size_t{3}}) {
                    if (source == "context" && mode != "cross") continue;
                    json request{{"inputs", x}};
                    if (mode == "cross") request["context"] = context;
                    if (mode == "multihead") request["heads"] = 2;
                    request["kernel"] = Words{"auto", "reference", "generic"}[++number % 3];
                    request["dtype"] = number % 2 == 0 ? "float32" : "float64";
                    const bool is_additive = way.starts_with("additive");
                    std::size_t cell = 0;
                    const auto keeps = [&]() -> json {
                        const bool keep = cell % tokens < valid[cell / tokens];
                        ++cell;
                        if (!is_additive) return keep;
                        return keep ? json(0) : json("-Infinity");
                    };
                    const json padding = nested({entries, tokens}, keeps);
                    if (way.ends_with("key_padding_mask")) request["key_padding_mask"] = padding;
                    if (way == "mask")
                        for (const json& row : padding)
                            request["mask"].push_back({std::vector<json>(tokens, row)});
                    if (way == "kv_lengths") request["kv_lengths"] = valid;
                    if (way == "mask" || way == "key_padding_mask") request["mask_true"] = "keep";
                    const json clean = request;
                    const bool is_nan = number % 4 < 2;
                    request[source][0][token][1] = is_nan ? "NaN" : "Infinity";
                    CAPTURE(mode);
                    CAPTURE(request.dump());
                    const Outcome outcome = run_attn({mode}, request.dump());
                    CAPTURE(outcome.err);
                    // In cross attention INPUT holds queries, which no mask of keys hides.
                    if (way == "none" || token < valid[0] ||
                        (mode == "cross" && source == "inputs")) {
                        CHECK(outcome.code == 3);
                        CHECK(contains(outcome.err, "finite"));
                        CHECK(outcome.out.empty());
                        continue;
                    }
                    REQUIRE(outcome.code == 0);
                    const json found = json::parse(outcome.out)["context_vectors"],
                               wanted = json::parse(
                                   run_attn({mode}, clean.dump()).out)["context_vectors"];
                    for (std::size_t b = 0; b < entries; ++b)
                        for (std::size_t q = 0; q < tokens; ++q) {
                            const bool is_own = mode != "cross" && b == 0 && q == token;
                            // Kernels do not fold the scale into queries where one is not finite.
                            for (std::size_t i = 0; i < wanted[b][q].size(); ++i)
                                if (!is_own)
                                    CHECK(found[b][q][i].get<double>() ==
                                          doctest::Approx(wanted[b][q][i].get<double>())
                                              .epsilon(1e-5));
                                else if (is_nan)
                                    CHECK(found[b][q][i] == "NaN");
                        }
                }
}

/// The cells of a table's array, row after row; its titles of matrices.
struct Cells {
    Words cells, titles;
};

/// `lines` begin with the array's line. Titles are of matrices that an axis counts.
Cells cells_in(const Words& lines, const json& axes, const std::vector<std::size_t>& shape) {
    Cells read;
    const std::size_t rank = shape.size(), columns = shape.back(),
                      rows = rank == 1 ? 1 : shape[rank - 2];
    std::size_t matrices = 1;
    bool has_titles = false;
    for (std::size_t i = 0; i + 2 < rank; ++i) {
        matrices *= shape[i];
        has_titles = has_titles || !(axes[i] == "batch" && shape[i] == 1);
    }
    std::size_t at = 1;
    for (std::size_t matrix = 0; matrix < matrices; ++matrix) {
        if (has_titles) read.titles.push_back(lines.at(at++));
        ++at;  // the columns' labels
        for (std::size_t row = 0; row < rows; ++row) {
            const Words words = words_in(lines.at(at++));
            REQUIRE(words.size() >= columns);
            read.cells.insert(read.cells.end(), words.end() - static_cast<std::ptrdiff_t>(columns),
                              words.end());
        }
    }
    REQUIRE(at == lines.size());
    return read;
}

std::string fixed(double value) {
    std::array<char, 400> text{};
    std::snprintf(text.data(), text.size(), "%.4f", value);
    const std::string shown = text.data();
    return shown == "-nan" ? "nan" : shown;
}

/// Whether each element of an array is masked; `mask` has every head, the array perhaps their mean.
std::vector<bool> masked_elements(const json& array, const json& mask) {
    const std::vector<double> keeps = flat(mask);
    const std::vector<std::size_t> shape = shape_of(array), of_mask = shape_of(mask);
    std::vector<bool> masked;
    if (shape == of_mask) {
        for (const double keep : keeps) masked.push_back(keep == 0);
        return masked;
    }
    const std::size_t rank = of_mask.size(), heads = of_mask[rank - 3],
                      matrix = of_mask[rank - 2] * of_mask[rank - 1];
    for (std::size_t first = 0; first < keeps.size(); first += heads * matrix)
        for (std::size_t i = 0; i < matrix; ++i) {
            bool is_masked = true;
            for (std::size_t h = 0; h < heads; ++h)
                is_masked = is_masked && keeps[first + h * matrix + i] == 0;
            masked.push_back(is_masked);
        }
    return masked;
}

std::vector<Words> tables_in(const std::string& text) {
    std::vector<Words> tables(1);
    for (const std::string& line : lines_of(text))
        if (line.empty())
            tables.emplace_back();
        else
            tables.back().push_back(line);
    return tables;
}

TEST_CASE("tables: a cell is a dot where the mask excludes the key, and else its number") {
    RandomQuestions::write_inputs();
    RandomQuestions questions(31, true);
    std::size_t dots = 0, zeros = 0;
    for (std::size_t i = 0; i < cases(150); ++i) {
        Words asked = questions.next() + Words{"--emit", "all", "--kernel", "reference"};
        const bool has_heads = asked[0] == "multihead" || asked[0] == "cross";
        if (has_heads && questions.one_in(3)) asked.emplace_back("--average-heads");
        if (questions.one_in(4)) asked = asked + Words{"--token", "3"};
        CAPTURE(joined(asked));
        const Outcome computed = run_attn(asked);
        const Outcome shown = run_attn(asked + Words{"-o", "t.table"});
        CHECK(shown.code == computed.code);
        if (computed.code != 0) continue;
        const json result = json::parse(computed.out);
        const json& axes = result["layout"]["axes"];
        for (const Words& lines : tables_in(read_text("t.table"))) {
            const std::string name = lines[0].substr(0, lines[0].find(' '));
            CAPTURE(name);
            const Cells read = cells_in(lines, axes[name], shape_of(result[name]));
            std::vector<double> numbers = flat(result[name]);
            if (result["config"]["dtype"] == "float32")
                for (double& number : numbers) number = static_cast<float>(number);
            REQUIRE(read.cells.size() == numbers.size());
            const std::size_t rank = axes[name].size();
            const bool has_masked = rank >= 2 && name != "mask" &&
                                    axes[name][rank - 2] == "q_len" &&
                                    axes[name][rank - 1] == "kv_len";
            const std::vector<bool> masked = has_masked
                                                 ? masked_elements(result[name], result["mask"])
                                                 : std::vector<bool>(numbers.size(), false);
            for (std::size_t cell = 0; cell < numbers.size(); ++cell) {
                CHECK(read.cells[cell] == (masked[cell] ? "." : fixed(numbers[cell])));
                dots += masked[cell] ? 1U : 0U;
                zeros += !masked[cell] && read.cells[cell] == "0.0000" ? 1U : 0U;
            }
        }
    }
    if (one_in == 1) CHECK(dots > 1000);
    if (one_in == 1) CHECK(zeros > 100);
}

}  // namespace
}  // namespace masked_test
