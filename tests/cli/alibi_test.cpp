// Slopes of ALiBi, of any number of heads, and the layers of models that have them. Every form of
// --alibi-slopes: same_answers.txt.
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace alibi_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// The recursion of the paper's own code.
std::vector<double> published(std::size_t heads) {
    std::vector<double> slopes;
    std::size_t power = 1;
    while (2 * power <= heads) power *= 2;
    for (std::size_t i = 1; i <= power; ++i)
        slopes.push_back(std::pow(2, -8.0 * static_cast<double>(i) / static_cast<double>(power)));
    if (power == heads) return slopes;
    const std::vector<double> twice = published(2 * power);
    for (std::size_t i = 0; slopes.size() < heads; i += 2) slopes.push_back(twice[i]);
    return slopes;
}

std::vector<double> geometric(std::size_t heads) {
    std::vector<double> slopes;
    for (std::size_t h = 1; h <= heads; ++h)
        slopes.push_back(std::pow(2, -8.0 * static_cast<double>(h) / static_cast<double>(heads)));
    return slopes;
}

/// Scores of zero, so that what is added is the score: three queries and keys in each head.
json question(std::size_t heads) {
    const json head{{0}, {0}, {0}};
    json request{{"query", json::array({json::array()})}, {"alibi", true}, {"dtype", "float64"}};
    for (std::size_t h = 0; h < heads; ++h) request["query"][0].push_back(head);
    request["key"] = request["value"] = request["query"];
    return request;
}

/// The slopes that the answer's scores have.
std::vector<double> slopes_in(const json& answer) {
    std::vector<double> slopes;
    for (const json& head : answer["biased_scores"][0]) {
        slopes.push_back(head[0][1]);
        CHECK(head[0][2].get<double>() == 2 * slopes.back());
        CHECK(head[2][0].get<double>() == -2 * slopes.back());
    }
    return slopes;
}

json answered(const Words& words, const json& request) {
    return result_of(words, request.dump());
}

bool are_near(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::abs(a[i] - b[i]) > 1e-15 * std::abs(b[i])) return false;
    return true;
}

TEST_CASE("alibi: slopes by default, by name and in a list") {
    CHECK(are_near(published(6), {0.25, 0.0625, 1 / 64.0, 1 / 256.0, 0.5, 0.125}));
    const Words words{"sdpa", "-", "--emit", "biased_scores"};
    for (std::size_t heads = 1; heads <= 24; ++heads) {
        CAPTURE(heads);
        json request = question(heads);
        std::vector<double> given;
        for (std::size_t h = 0; h < heads; ++h)
            given.push_back((static_cast<double>(h * 5 % 7) - 2) / 8);
        CHECK(are_near(slopes_in(answered(words, request)), published(heads)));
        request["alibi_slopes"] = "geometric";
        CHECK(are_near(slopes_in(answered(words, request)), geometric(heads)));
        request["alibi_slopes"] = given;
        CHECK(slopes_in(answered(words, request)) == given);
    }
}

TEST_CASE("alibi: a layer of BLOOM or MPT with any number of heads is one of attn multihead") {
    for (const json& original : model_cases())
        for (std::size_t heads : std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 12}) {
            const std::string name = original["name"];
            if (name != "bloom" && name != "mpt") continue;
            CAPTURE(name);
            CAPTURE(heads);
            json model = original;
            const std::size_t width = 4 * heads;
            for (auto& [tensor, drawn] : model["tensors"].items())
                for (json& size : drawn[0])
                    if (const std::size_t old = size; old % 32 == 0) size = old / 32 * width;
            for (const char* key : {"hidden_size", "d_model"})
                if (model["config"].contains(key)) model["config"][key] = width;
            for (const char* key : {"n_head", "n_heads"})
                if (model["config"].contains(key)) model["config"][key] = heads;
            write_model(model, "model");
            const Words ids{"--token-ids", "3,1,4,1,5", "--dtype", "float64"};
            const json whole = answered(
                Words{"model", "model", "--emit", "attention_weights"} + ids, json::object());
            for (const std::string layer : {"0", "1"}) {
                const json one = answered(Words{"multihead", "--weights", "model", "--layer", layer,
                                                "--emit", "attention_weights,biased_scores"} +
                                              ids,
                                          json::object());
                CHECK(one["config"]["alibi"] == true);
                CHECK(difference_of(one["attention_weights"],
                                    whole["attention_weights"][std::stoul(layer)]) < 1e-12);
            }
        }
}

}  // namespace
}  // namespace alibi_test
