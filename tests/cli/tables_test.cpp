// Every row of the tables of score steps and masks: its option, its words in `attn explain` and the
// manual, and what it does, on the reference and on a fused kernel, against a loop over formulas.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/layer/mask_rows.hpp"
#include "core/operator/score_steps.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace tables_test {

using nlohmann::json;
using namespace attn;
using test::run_attn;

namespace {

constexpr std::size_t heads = 2, queries = 3, keys = 4, width = 2;

/// What a row of a table is asked with, and the score of head h, query q and key k after it; a
/// score of -Infinity is a masked key.
struct Case {
    std::string key;
    json value;
    std::function<double(double score, std::size_t h, std::size_t q, std::size_t k)> formula;
    std::string words;
};

double masked_unless(bool seen, double score) {
    return seen ? score : -std::numeric_limits<double>::infinity();
}

const double added[queries][keys] = {{0, 1, -2, 0.5}, {0.25, 0, 3, -1}, {1, -1, 0, 0}};
const bool kept[queries][keys] = {
    {true, false, true, true}, {false, true, true, false}, {true, true, false, true}};
const bool is_key[keys] = {true, true, false, true};

const std::vector<Case> step_cases{
    {"scale", 0.5, [](double x, auto...) { return 0.5 * x; }, "is multiplied by 0.5"},
    {"softcap", 1.5, [](double x, auto...) { return 1.5 * std::tanh(x / 1.5); },
     "C tanh(x / C) with C = 1.5"},
    {"alibi", true,
     [](double x, std::size_t h, std::size_t q, std::size_t k) {
         const double slope = std::pow(2.0, -8.0 * double(h + 1) / double(heads));
         return x + slope * (double(k) - double(q));
     },
     "slope * (j - p) is added"},
    {"mask", added,
     [](double x, std::size_t, std::size_t q, std::size_t k) { return x + added[q][k]; },
     "is added to the scores"}};

const std::vector<Case> mask_cases{
    {"mask", kept,
     [](double x, std::size_t, std::size_t q, std::size_t k) {
         return masked_unless(kept[q][k], x);
     },
     "boolean mask (\"mask\" of the request)"},
    {"key_padding_mask", is_key,
     [](double x, std::size_t, std::size_t, std::size_t k) { return masked_unless(is_key[k], x); },
     "boolean mask (\"key_padding_mask\" of the request)"},
    {"causal", true,
     [](double x, std::size_t, std::size_t q, std::size_t k) { return masked_unless(k <= q, x); },
     "key j is seen where j <= p"},
    {"window", json{1, 0},
     [](double x, std::size_t, std::size_t q, std::size_t k) {
         return masked_unless(k <= q && q <= k + 1, x);
     },
     "key j is seen where p - 1 <= j <= p"},
    {"kv_lengths", json{3},
     [](double x, std::size_t, std::size_t, std::size_t k) { return masked_unless(k < 3, x); },
     "the first 3 of this batch entry"}};

json tensor(std::size_t rows, double seed) {
    json numbers = json::array();
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t i = 0; i < width; ++i)
                numbers[h][r][i] = std::sin(seed * double(h * 100 + r * 10 + i + 1));
    return numbers;
}

json question_of(const Case& asked) {
    json question{{"query", tensor(queries, 1)},
                  {"key", tensor(keys, 2)},
                  {"value", tensor(keys, 3)},
                  {"dtype", "float64"},
                  {asked.key, asked.value}};
    if (asked.words.starts_with("boolean")) question["mask_true"] = "keep";
    if (asked.key == "causal" || asked.key == "window") question["causal_align"] = "top-left";
    return question;
}

/// The softmax of every row by the formula, flat.
std::vector<double> weights_of(const Case& asked, const json& question) {
    std::vector<double> weights;
    const double scale = asked.key == "scale" ? 1 : 1 / std::sqrt(double(width));
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t q = 0; q < queries; ++q) {
            std::vector<double> powers;
            double total = 0;
            for (std::size_t k = 0; k < keys; ++k) {
                double score = 0;
                for (std::size_t i = 0; i < width; ++i)
                    score += question["query"][h][q][i].get<double>() *
                             question["key"][h][k][i].get<double>();
                powers.push_back(std::exp(asked.formula(scale * score, h, q, k)));
                total += powers.back();
            }
            for (double power : powers) weights.push_back(power / total);
        }
    return weights;
}

template <class Row>
void check_case(const Row& row, const Case& asked, const std::string& label) {
    CAPTURE(asked.key);
    CAPTURE(label);
    REQUIRE(asked.key == row.key);
    std::string flag = "--" + asked.key;
    for (char& c : flag) c = c == '_' ? '-' : c;
    CHECK(run_attn({"sdpa", "--help"}).out.find(flag) != std::string::npos);
    CHECK(test::manual_text().find("`" + flag) != std::string::npos);

    const json question = question_of(asked);
    const std::vector<double> expected = weights_of(asked, question);
    for (const std::string kernel : {"reference", "generic"}) {
        CAPTURE(kernel);
        const test::Outcome run = run_attn(
            {"sdpa", "--emit", "attention_weights", "--kernel", kernel, "--precision", "17"},
            question.dump());
        REQUIRE(run.code == 0);
        const std::vector<double> weights = test::flat(json::parse(run.out)["attention_weights"]);
        REQUIRE(weights.size() == expected.size());
        for (std::size_t i = 0; i < weights.size(); ++i)
            CHECK(weights[i] == doctest::Approx(expected[i]).epsilon(1e-13));
    }
    const test::Outcome page = run_attn({"explain", "sdpa"}, question.dump());
    CHECK(page.out.find(asked.words) != std::string::npos);
    CHECK(page.out.find(label) != std::string::npos);
}

}  // namespace

TEST_CASE(
    "tables: every score step has its option, its words, its line in the manual, its formula") {
    REQUIRE(step_cases.size() == score_steps().size());
    for (std::size_t i = 0; i < step_cases.size(); ++i) {
        const ScoreStep& step = score_steps()[i];
        check_case(step, step_cases[i], std::string(step.emits[0].row().name));
    }
}

TEST_CASE("tables: every mask has its option, its words, its line in the manual, its formula") {
    REQUIRE(mask_cases.size() == mask_rows().size());
    for (std::size_t i = 0; i < mask_cases.size(); ++i) {
        const MaskRow& row = mask_rows()[i];
        check_case(row, mask_cases[i], std::string(row.allowed.row().name));
    }
}

}  // namespace tables_test
