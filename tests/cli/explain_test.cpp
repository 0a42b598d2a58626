// The walk through one query: its numbers are those that the modes write.
#include "io/text/text.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/random_question.hpp"

namespace explain_test {
namespace {

using namespace attn::test;
namespace io = attn::io;
using nlohmann::json;

bool near(double shown, double written, bool single) {
    if (std::isnan(written) || std::isinf(written))
        return std::isnan(written) ? std::isnan(shown) : shown == written;
    if (std::abs(shown - written) < 1e-19) return true;  // digits that the page does not show
    return single ? static_cast<float>(shown) == static_cast<float>(written) : shown == written;
}

void check_same(const std::vector<double>& shown, const json& written, bool single) {
    const std::vector<double> numbers = flat(written);
    REQUIRE(shown.size() == numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        CAPTURE(shown[i]);
        CAPTURE(numbers[i]);
        CHECK(near(shown[i], numbers[i], single));
    }
}

/// "a*b + c*d + e = f" adds up, about; "0.5 (the 8 smallest products)" is a term.
void check_sums(const std::string& page) {
    std::size_t sums = 0;
    for (const std::string& line : lines_of(page)) {
        const std::size_t first = line.find("] = "), last = line.rfind(" = ");
        if (!line.starts_with("    ") || line.find('*') == std::string::npos ||
            first == std::string::npos || last <= first)
            continue;
        CAPTURE(line);
        if (contains(line, "*cos(")) {
            const std::vector<double> n = numbers_in(line.substr(first + 4));
            CHECK(std::abs(n.at(0) * std::cos(n.at(1)) - n.at(2) * std::sin(n.at(3)) - n.at(4)) <
                  1e-5);
            continue;
        }
        if (contains(line, " / sqrt(")) continue;
        double total = 0;
        std::string terms = line.substr(first + 4, last - first - 4) + " + ";
        for (std::size_t at; (at = terms.find(" + ")) != std::string::npos;) {
            const std::string term = terms.substr(0, at);
            const std::vector<double> factors = numbers_in(term.substr(0, term.find(" (the ")));
            total += factors.size() == 2 ? factors[0] * factors[1] : factors.at(0);
            terms.erase(0, at + 3);
        }
        const std::vector<double> result = numbers_in(line.substr(last));
        if (std::isfinite(result.at(0))) CHECK(std::abs(total - result.at(0)) < 1e-5);
        ++sums;
    }
    CHECK(sums >= 1);
}

/// The part of an array that belongs to a query, batch entry and head.
json part_of(const json& result, const std::string& name, std::size_t token, std::size_t batch,
             std::size_t head) {
    json part = result[name];
    for (const json& axis : result["layout"]["axes"][name]) {
        if (axis == "batch") part = json(part[batch]);
        if (axis == "heads")
            part = json(part[head * part.size() / result["shapes"]["heads"].get<std::size_t>()]);
        if (axis == "q_len") part = json(part[token]);
    }
    return part;
}

/// Holds "name[head 1][2][0] = ... = 0.5" and "name[2] = [0.5, 1]" against the array of that name.
void check_names(const std::string& page, const json& result, bool single) {
    std::size_t checked = 0;
    for (const std::string& line : numbers_of(page)) {
        const std::size_t open = line.find('['), equals = line.find(" = ");
        if (open == std::string::npos || open > equals) continue;
        const std::string name = line.substr(4, open - 4);
        if (!result.contains(name)) continue;
        CAPTURE(line);
        const json* at = &result[name];
        for (const double index : numbers_in(line.substr(open, equals - open))) {
            REQUIRE(at->is_array());
            REQUIRE(index < static_cast<double>(at->size()));
            at = &(*at)[static_cast<std::size_t>(index)];
        }
        const std::string shown = line.substr(line.rfind(" = ") + 3);
        check_same(numbers_in(shown.substr(0, shown.find(']'))), *at, single);
        ++checked;
    }
    CHECK(checked >= 4);
}

/// Holds the tables of one head, which have a number or a vector for each key, against the arrays.
void check_tables(const std::string& page, const json& result, std::size_t token, std::size_t batch,
                  std::size_t head, bool single) {
    const std::string part = head_part(page, head);
    for (const char* name : {"queries", "head_outputs"}) CHECK(!vector_of(part, name).empty());
    CHECK(!table_row(part, "scaled_scores").empty());
    CHECK(!table_row(part, "weights_before_dropout").empty());
    for (const auto& item : result["layout"]["axes"].items()) {
        const std::string& name = item.key();
        CAPTURE(name);
        const std::vector<double> shown = table_row(part, name);
        if (item.value().back() == "kv_len" && !shown.empty())
            check_same(shown, part_of(result, name, token, batch, head), single);
        if (name != "present_key" && name != "present_value") continue;
        const json vectors = part_of(result, name, token, batch, head);
        for (std::size_t key = 0; key < vectors.size(); ++key)
            check_same(key_row(part, name, key), vectors[key], single);
    }
}

void check_walk(const Words& asked, const std::vector<std::size_t>& tokens,
                const std::string& input = "") {
    CAPTURE(joined(asked));
    CAPTURE(input);
    const json result =
        json::parse(good(asked + Words{"--emit", "all", "--kernel", "reference"}, input));
    const bool single = result["config"]["dtype"] == "float32";
    const auto size = [&](const char* name) { return result["shapes"][name].get<std::size_t>(); };
    for (const std::size_t token : tokens)
        for (std::size_t batch = 0; batch < size("batch"); ++batch) {
            const std::string page = good(Words{"explain"} + asked +
                                              Words{"--token", std::to_string(token), "--precision",
                                                    "20", "--batch", std::to_string(batch)},
                                          input);
            check_headings(page);
            check_names(page, result, single);
            for (std::size_t head = 0; head < size("heads"); ++head)
                check_tables(page, result, token, batch, head, single);
            check_sums(page);
            CHECK(contains(page, "Check: "));
        }
}

TEST_CASE("explain: every number is the mode's own, for every option of the operator") {
    RandomQuestions::write_inputs();
    RandomQuestions questions(23, true);
    for (std::size_t i = 0; i < cases(60); ++i)
        if (const Words asked = questions.next(); run_attn(asked).code == 0)
            check_walk(asked, {1, 4});
    const Words self{"self", "--example", "journey"};
    const Words heads = words_in("multihead --example journey --d-out 8 --heads 4");
    for (const Words& arguments : std::vector<Words>{
             self + Words{"--init", "none"},
             self + words_in("--init rand --qkv-bias --d-k 2 --d-v 4"),
             self + words_in("--d-out 4 --rope interleaved --rope-dims 2"),
             self + Words{"--sink", "-2", "--kv-lengths", "0"},
             heads + Words{"--no-out-proj", "--no-causal"},
             heads + Words{"--no-out-bias", "--kv-heads", "2", "--rope", "half"},
             heads + words_in("--kv-heads 1 --alibi --softcap 2 --sink 1,2,3,4"),
             heads + Words{"--d-k", "16", "--d-v", "4", "--qkv-bias"},
             words_in("multihead --example journey --heads 3 --init mha --causal"),
             words_in("multihead --example journey --heads 2 --init none --style wrapper"),
             words_in("multihead --example journey --heads 2 --d-out 2 --style wrapper --qkv-bias "
                      "--init rand --dropout 0.2"),
             words_in("multihead --example pair --heads 2 --kv-lengths 4,11 --dropout 0.5")})
        check_walk(arguments, {1, 4});
    check_walk({"causal", "--text", "Life is short", "--embed-dim", "4"}, {2});
    check_walk({"multihead", "--weights", data_path("models/gpt2"), "--token-ids", "3,1,4"}, {2});
    check_walk({"multihead", data_path("models/hidden.csv"), "--weights", data_path("models/gpt2"),
                "--layer", "1", "--pre-norm"},
               {1});
}

TEST_CASE("explain: the bare operator, its ranks and the contents of masked keys") {
    const std::string one = R"({"query": [[1, 0.5], [0, 1]], "key": [[1, 2], [0, 1], [3, -1]],
                                "value": [[1], [2], [3]])";
    const std::string three =
        R"({"query": [[[1, 0.5]], [[0, 1]]], "key": [[[1, 2], [0, 1]], [[3, -1], [1, 1]]],
            "value": [[[1], [2]], [[3], [4]]])";
    const std::string packed = R"({"query": [[1, 0.5, 0, 1]], "key": [[1, 2, 0, 1], [3, -1, 1, 1]],
                                   "value": [[1, 2], [3, 4]], "heads": 2)";
    check_walk({"sdpa"}, {1}, one + "}");
    check_walk({"sdpa"}, {1}, one + R"(, "causal": true, "causal_align": "bottom-right"})");
    check_walk({"sdpa"}, {0}, three + R"(, "scale": 2, "rope": "half"})");
    check_walk({"sdpa"}, {0}, packed + "}");
    check_walk({"sdpa"}, {0}, R"({"query": [[[[1, 0.5]], [[2, 1]]]], "key": [[[[1, 2], [0, 1]]]],
                                  "value": [[[[1], [2]]]], "mask": [0, -1], "sink": [0.5]})");
    check_walk({"sdpa"}, {0}, R"({"query": [[1, 0.5]], "key": [[1, 2], [NaN, 1]],
                                "value": [[1], [Infinity]], "mask": [0, -Infinity]})");
    check_walk({"sdpa"}, {0}, R"({"query": [[1e30]], "key": [[1e30], [1]], "value": [[1], [2]]})");
}

TEST_CASE("explain: Markdown with labels of every kind keeps its tables and headings") {
    json request = {{"inputs", {{1, 2}, {3, 4}, {5, 6}}},
                    {"tokens", {"a|b", "`c`\n# no heading\n```", "<b>[x](y)*_\\|"}}};
    const std::string page =
        good(words_in("explain causal - --token 1 --format markdown"), request.dump());
    CHECK(page.starts_with(
        "# Query 1 \"\\`c\\`\\\\x0a\\# no heading\\\\x0a\\`\\`\\`\" of attn causal\n"));
    std::size_t cells = 0, tables = 0, headings = 0;
    bool in_formula = false;
    for (const std::string& line : lines_of(page)) {
        CAPTURE(line);
        if (line.starts_with("```")) {
            CHECK(line == (in_formula ? "```" : "```text"));
            in_formula = !in_formula;
        }
        if (in_formula || line.empty()) {
            cells = 0;
            continue;
        }
        headings += line.starts_with("#") ? 1u : 0u;
        if (!line.starts_with("|")) continue;
        std::size_t bars = 0;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (line[i] == '\\')
                ++i;
            else if (line[i] == '|')
                ++bars;
        }
        if (cells == 0) ++tables;
        if (cells != 0) CHECK(bars == cells);
        cells = bars;
    }
    CHECK_FALSE(in_formula);
    CHECK(tables >= 6);
    CHECK(headings >= 8);
    CHECK(contains(page, "\\<b\\>\\[x\\](y)\\*\\_\\\\\\|"));
    const std::string text = good({"explain", "causal", "-", "--token", "1"}, request.dump());
    CHECK_FALSE(contains(text, "\n# no"));
}

/// Whether a line could have ended earlier: at a blank between words, behind a comma or before a
/// sign.
bool could_be_broken(const std::string& line) {
    const std::size_t first = line.find_first_not_of(" -");
    std::string words = first == std::string::npos ? "" : line.substr(first);
    for (const char* sign : {"+ ", "= "})
        if (words.starts_with(sign)) words.erase(0, 2);
    return words.find(' ') != std::string::npos;
}

TEST_CASE("explain: a page of any width fits, and has the contents of the widest") {
    const std::string gpt2 = data_path("models/gpt2");
    std::string labels =
        R"("tokens": ["an_unusually_long_label_without_a_blank", "日本語日本語日本語日本語",
        "שלום עולם", "two words", "e\u0301e\u0301", "👨‍👩‍👧"])";
    const std::string scripts =
        R"({"inputs": [[1,2],[3,4],[5,6],[1,1],[0,2],[2,0]], )" + labels + "}";
    struct Case {
        Words ask;
        std::string input = {};
    };
    for (const Case& one : std::vector<Case>{
             {{"self", "--example", "journey", "--d-out", "2"}},
             {words_in("causal --example journey --dropout 0.5 --window 1")},
             {words_in("causal --example journey --precision 15 --sink 1 --alibi")},
             {{"multihead", "--weights", gpt2, "--token-ids", "1,2,3,4", "--head", "1"}},
             {{"cross", data_path("journey.csv"), "--context", data_path("journey.csv")}},
             {{"causal", "-"}, scripts},
             {words_in("multihead - --heads 2 --kv-lengths 4"), scripts},
             {{"self", "--text", "a b c d e f g h i j k l m n o p q r s t", "--rope", "half",
               "--d-out", "6", "--mask-method", "renormalize"}}}) {
        const std::string whole = good(Words{"explain"} + one.ask, one.input);
        const Words whole_lines = lines_of(unfolded(whole));
        for (std::size_t columns = 40; columns <= 200; columns += columns < 100 ? 3 : 25) {
            CAPTURE(joined(one.ask));
            CAPTURE(columns);
            const std::string page = good(Words{"explain"} + one.ask, one.input, columns);
            for (const std::string& line : lines_of(page)) {
                CAPTURE(line);
                CHECK((io::display_width(line) <= columns || !could_be_broken(line)));
            }
            for (const std::string& line : lines_of(unfolded(page))) {
                // Vectors in tables may be cut further than on a wider page.
                const bool is_formula = contains(line, " = ");
                if (is_formula)
                    CHECK(std::find(whole_lines.begin(), whole_lines.end(), line) !=
                          whole_lines.end());
            }
        }
    }
}

}  // namespace
}  // namespace explain_test
