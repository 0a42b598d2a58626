// The keys of the largest weights are those of the whole weights. Other statistics and rows:
// evaluate_test.cpp and part_test.cpp.
#include "tests/support/answers.hpp"
#include "tests/support/random_question.hpp"

namespace row_statistics_test {
namespace {

using namespace attn::test;
using Json = nlohmann::ordered_json;

constexpr std::size_t top = 3;

double number(const Json& value) {
    return value.is_string() ? -std::numeric_limits<double>::infinity() : value.get<double>();
}

/// The keys of the largest scores of each query of one head, and their weights.
Json expected_of(const Json& scores, const Json& mask, const Json& weights) {
    Json all;
    for (std::size_t q = 0; q < weights.size(); ++q) {
        std::vector<std::size_t> order;
        for (std::size_t k = 0; k < weights[q].size(); ++k)
            if (number(mask[q][k]) != 0) order.push_back(k);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return number(scores[q][a]) > number(scores[q][b]);
        });
        Json listed = Json::array(), of_listed = Json::array();
        for (std::size_t i = 0; i < top; ++i) {
            listed.push_back(i < order.size() ? double(order[i]) : -1);
            of_listed.push_back(i < order.size() ? number(weights[q][order[i]]) : 0);
        }
        all["argmax_key"].push_back(listed[0]);
        all["top_keys"].push_back(listed);
        all["top_weights"].push_back(of_listed);
    }
    return all;
}

void check_near(const Json& found, const Json& expected, double most) {
    if (!expected.is_array()) {
        const double a = number(found), b = number(expected);
        CHECK((a == b || std::abs(a - b) <= most * std::max(1.0, std::abs(b))));
        return;
    }
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) check_near(found[i], expected[i], most);
}

/// Numbers of this shape that look drawn.
std::string array_text(const std::vector<std::size_t>& shape) {
    int count = 0;
    return nested<Json>(shape, [&] { return ++count * 37 % 101 / 50.0 - 1; }).dump();
}

/// What there is of a head of a batch entry: an array has these axes, or not.
const Json& part_of(const Json& result, const std::string& name, std::size_t batch,
                    std::size_t head) {
    const Json* part = &result[name];
    for (const Json& axis : result["layout"]["axes"][name]) {
        if (axis == "batch") part = &(*part)[batch];
        if (axis == "heads") part = &(*part)[head];
    }
    return *part;
}

TEST_CASE("top keys are those of the whole weights, with every option and kernel") {
    RandomQuestions::write_inputs();
    write_text("batch.json", array_text({2, 37, 4}));
    RandomQuestions questions(4, true);
    std::size_t answered = 0;
    for (std::size_t number = 0; number < 300; number += one_in) {
        // Tiles and batch entries are many in a few.
        const Words question =
            number % 10 != 0 ? questions.next()
                             : Words{"multihead", "batch.json", "--heads",  "2",
                                     "--d-out",   "6",          "--window", std::to_string(number)};
        CAPTURE(joined(question));
        const Outcome outcome =
            run_attn(question + Words{"--emit", "weights_before_dropout,biased_scores,mask"});
        if (outcome.code == 2) continue;  // options that exclude each other
        REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
        ++answered;
        const Json whole = Json::parse(outcome.out);
        const bool is_fused = whole["config"]["mask_method"] == "neg-inf" && number % 3 != 0;
        const Words words =
            question +
            Words{"--kernel", is_fused ? number % 3 == 1 ? "generic" : "auto" : "reference",
                  "--emit",   "argmax_key,top_keys,top_weights",
                  "--top",    std::to_string(top)};
        const auto answer_on = [&](const char* threads) {
            return Json::parse(output_of(words + Words{"--threads", threads}));
        };
        const Json found = answer_on("2");
        if (number % 8 == 0) CHECK(answer_on("3") == found);
        const Json& axes = whole["layout"]["axes"]["mask"];
        const std::vector<std::size_t> shape = shape_of(whole["mask"]);
        std::size_t entries = 1, heads = 1;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            if (axes[i] == "batch") entries = shape[i];
            if (axes[i] == "heads") heads = shape[i];
        }
        for (std::size_t batch = 0; batch < entries; ++batch)
            for (std::size_t head = 0; head < heads; ++head) {
                const Json expected =
                    expected_of(part_of(whole, "biased_scores", batch, head),
                                part_of(whole, "mask", batch, head),
                                part_of(whole, "weights_before_dropout", batch, head));
                for (const char* name : {"argmax_key", "top_keys", "top_weights"}) {
                    CAPTURE(name);
                    check_near(part_of(found, name, batch, head), expected[name],
                               whole["config"]["dtype"] == "float64" ? 1e-11 : 1e-4);
                }
            }
    }
    if (one_in == 1) CHECK(answered > 150);
}

}  // namespace
}  // namespace row_statistics_test
