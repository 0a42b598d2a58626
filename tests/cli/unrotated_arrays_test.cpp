// Queries and keys before the rotary embedding: the projections of the inputs, and what the
// embedding turns into `queries` and `keys`, by the test's own formulas in float64.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace unrotated_arrays_test {

using namespace attn::test;
using nlohmann::json;

namespace {

struct Rotation {
    std::string pairs;  ///< empty: none
    double base = 10000;
    std::size_t dims = 0;  ///< 0: all
};

/// (batch, heads, rows, d) without the axes that a result omits.
struct Rows {
    std::vector<double> values;
    std::size_t rows, d;

    explicit Rows(const json& array)
        : values(flat(array)), rows(shape_of(array)[shape_of(array).size() - 2]),
          d(shape_of(array).back()) {}
};

std::vector<double> rotated(const Rows& x, const Rotation& rotation, std::size_t first_position) {
    std::vector<double> result = x.values;
    if (rotation.pairs.empty()) return result;
    const std::size_t dims = rotation.dims == 0 ? x.d : rotation.dims;
    for (std::size_t row = 0; row * x.d < result.size(); ++row)
        for (std::size_t m = 0; m < dims / 2; ++m) {
            const bool halves = rotation.pairs == "half";
            const std::size_t i = row * x.d + (halves ? m : 2 * m),
                              j = row * x.d + (halves ? m + dims / 2 : 2 * m + 1);
            const double position = static_cast<double>(first_position + row % x.rows);
            const double angle = position * std::pow(rotation.base, -2.0 * static_cast<double>(m) /
                                                                        static_cast<double>(dims));
            const double a = x.values[i], b = x.values[j];
            result[i] = a * std::cos(angle) - b * std::sin(angle);
            result[j] = a * std::sin(angle) + b * std::cos(angle);
        }
    return result;
}

/// inputs W^T + b, its columns split into heads: (batch, heads, tokens, d). W is (d_out, d_in).
std::vector<double> projected(const json& inputs, const json& weight, const json* bias,
                              std::size_t heads) {
    const std::vector<double> x = flat(inputs), w = flat(weight),
                              b = bias == nullptr ? std::vector<double>{} : flat(*bias);
    const std::size_t d_out = shape_of(weight)[0], d_in = shape_of(weight)[1],
                      tokens = shape_of(inputs)[shape_of(inputs).size() - 2],
                      batch = x.size() / (tokens * d_in), d = d_out / heads;
    std::vector<double> result;
    for (std::size_t entry = 0; entry < batch; ++entry)
        for (std::size_t head = 0; head < heads; ++head)
            for (std::size_t token = 0; token < tokens; ++token)
                for (std::size_t i = 0; i < d; ++i) {
                    const std::size_t out = head * d + i;
                    double sum = b.empty() ? 0 : b[out];
                    for (std::size_t k = 0; k < d_in; ++k)
                        sum += x[(entry * tokens + token) * d_in + k] * w[out * d_in + k];
                    result.push_back(sum);
                }
    return result;
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected,
                double most) {
    REQUIRE(found.size() == expected.size());
    std::size_t far = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
        far += std::abs(found[i] - expected[i]) <= most * std::max(1.0, std::abs(expected[i])) ? 0U
                                                                                               : 1U;
    CHECK(far == 0);
}

struct Question {
    Words words;
    std::size_t heads = 1, kv_heads = 1, past = 0;
    std::string input = {};
};

std::vector<Question> questions() {
    const std::string past = R"([[0.5,1,2,-1],[1,0,0.25,3]])";
    write_text("past.json", past);
    write_text("context.csv", "0.5,1,2\n2,0,1\n1,1,1\n-1,0.5,0\n");
    const Words journey{"--example", "journey"}, twice{"--example", "journey-twice"};
    const Words cache{"--past-key", "past.json", "--past-value", "past.json"};
    return {
        {Words{"self"} + journey + Words{"--d-out", "4"}},
        {Words{"self"} + twice + Words{"--d-out", "4", "--qkv-bias"}},
        {Words{"causal"} + journey + Words{"--d-out", "4"} + cache, 1, 1, 2},
        {Words{"multihead"} + journey + Words{"--d-out", "16", "--heads", "4", "--kv-heads", "2"},
         4, 2},
        {Words{"multihead"} + twice + Words{"--d-out", "16", "--heads", "4", "--qkv-bias"}, 4, 4},
        {Words{"cross"} + journey +
             Words{"--context", "context.csv", "--d-out", "8", "--heads", "2"},
         2, 2},
        {Words{"sdpa"}, 1, 1, 0,
         R"({"query": [[1,0.5,2,3],[0,1,-1,2]], "key": [[1,2,0,1],[0,1,3,0.5],[2,1,1,1]], "value": [[1],[2],[3]]})"},
        {Words{"sdpa"} + cache + Words{"--past-value", "past_values.json"}, 1, 1, 2,
         R"({"query": [[1,0.5,2,3]], "key": [[1,2,0,1]], "value": [[1]]})"},
    };
}

}  // namespace

TEST_CASE("unrotated arrays: the projections of the inputs, and what the rotation starts from") {
    scratch_folder();
    write_text("past_values.json", "[[1],[2]]");
    const std::vector<std::pair<Words, Rotation>> rotations{
        {{}, {}},
        {{"--rope", "half"}, {"half"}},
        {{"--rope", "interleaved", "--rope-base", "50"}, {"interleaved", 50}},
        {{"--rope", "half", "--rope-dims", "2"}, {"half", 10000, 2}}};
    std::size_t count = 0;
    for (const Question& question : questions())
        for (const auto& [flags, rotation] : rotations)
            for (const char* dtype : {"float32", "float64"})
                for (const char* kernel : {"reference", "generic"})
                    for (const char* token : {"", "1"}) {
                        const bool is_projected = question.words[0] != "sdpa";
                        const bool has_token = token[0] != '\0';
                        if (has_token && question.input.find("[0,1,-1,2]") == std::string::npos &&
                            !is_projected)
                            continue;  // one query
                        const Words words =
                            question.words + flags +
                            Words{"--dtype",
                                  dtype,
                                  "--kernel",
                                  kernel,
                                  "--emit",
                                  std::string("unrotated_queries,unrotated_keys,queries,keys,"
                                              "present_key") +
                                      (is_projected ? ",inputs,W_query,W_key" : "") +
                                      (question.words.back() == "--qkv-bias" ? ",b_query,b_key"
                                                                             : "")} +
                            (has_token ? Words{"--token", token} : Words{});
                        std::string line;
                        for (const std::string& word : words) line += word + " ";
                        CAPTURE(line);
                        const Outcome outcome = run_attn(words, question.input);
                        CHECK(outcome.err == "");
                        REQUIRE(outcome.code == 0);
                        const json result = json::parse(outcome.out);
                        const double most = std::string(dtype) == "float32" ? 2e-6 : 1e-13;
                        const std::size_t first = has_token ? 1 : 0;
                        const Rows queries(result["unrotated_queries"]),
                            keys(result["unrotated_keys"]);
                        CHECK(shape_of(result["unrotated_queries"]) == shape_of(result["queries"]));
                        CHECK(shape_of(result["unrotated_keys"]) == shape_of(result["keys"]));
                        check_near(flat(result["queries"]),
                                   rotated(queries, rotation, question.past + first), most);
                        check_near(flat(result["keys"]), rotated(keys, rotation, question.past),
                                   most);
                        if (rotation.pairs.empty()) {
                            CHECK(result["queries"] == result["unrotated_queries"]);
                            CHECK(result["keys"] == result["unrotated_keys"]);
                        }
                        ++count;
                        if (!is_projected) {
                            const json given = json::parse(question.input);
                            json rows = given["query"];
                            if (has_token) rows = json::array({rows[1]});
                            check_near(queries.values, flat(rows), most);
                            check_near(keys.values, flat(given["key"]), most);
                            continue;
                        }
                        const bool has_bias = result.contains("b_query");
                        std::vector<double> expected =
                            projected(result["inputs"], result["W_query"],
                                      has_bias ? &result["b_query"] : nullptr, question.heads);
                        if (has_token) {  // row 1 of each matrix
                            const std::size_t tokens = 6, d = queries.d;
                            std::vector<double> rows;
                            for (std::size_t at = d; at < expected.size(); at += tokens * d)
                                rows.insert(rows.end(),
                                            expected.begin() + static_cast<std::ptrdiff_t>(at),
                                            expected.begin() + static_cast<std::ptrdiff_t>(at + d));
                            expected = rows;
                        }
                        check_near(queries.values, expected, most);
                        const bool is_cross = question.words[0] == "cross";
                        const json source =
                            is_cross ? json::parse("[[0.5,1,2],[2,0,1],[1,1,1],[-1,0.5,0]]")
                                     : result["inputs"];
                        check_near(
                            keys.values,
                            projected(source, result["W_key"],
                                      has_bias ? &result["b_key"] : nullptr, question.kv_heads),
                            most);
                    }
    CHECK(count > 200);
}

TEST_CASE("unrotated arrays: a result with them shows its rotation") {
    scratch_folder();
    const Words asked{"multihead", "--example", "journey", "--d-out", "8",  "--heads", "2",
                      "--rope",    "half",      "--emit",  "all",     "-o", "r.json"};
    REQUIRE(run_attn(asked).code == 0);
    const Outcome page = run_attn({"explain", "r.json", "--token", "3"});
    CHECK(page.err == "");
    CHECK(contains(page.out, "Rotary embedding"));
    CHECK(contains(page.out, "unrotated_queries[head 1][3][0] = "));
    CHECK(contains(page.out, "unrotated_keys[head 1][3] = "));
}

}  // namespace unrotated_arrays_test
