// attn check --search, through the real binary: operands of the operator with reshaped axes,
// numbers that no list has, axes that fit in several orders, and dropout. Other conventions:
// tests/search_cases.py.
#include <fstream>

#include "tests/support/answers.hpp"

namespace check_search_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// The report on arrays that are wrong.
json searched(const Words& question, const json& arrays) {
    std::ofstream("theirs.json") << arrays;
    return answer(Words{"check"} + question +
                      Words{"--against", "theirs.json", "--search", "--format", "json"},
                  "", 1);
}

/// The conventions of the best match, with their flags; empty: there is none.
std::string best_match(const json& report) {
    std::string words;
    if (report["matches"].empty()) return words;
    for (const json& change : report["matches"][0]["changes"]) {
        words += (words.empty() ? "" : ", ") + change["convention"].get<std::string>();
        if (!change["flag"].is_null()) words += " " + change["flag"].get<std::string>();
    }
    return words;
}

json only(const json& result, const std::string& name) {
    return {{name, result[name]}};
}

/// The numbers of an array in order, as one of another shape of three axes.
json reshaped(const json& array, std::size_t a, std::size_t b, std::size_t c) {
    const std::vector<double> numbers = flat(array);
    REQUIRE(numbers.size() == a * b * c);
    json whole(a, json(b, json(c, 0)));
    for (std::size_t i = 0; i < numbers.size(); ++i)
        whole[i / (b * c)][i / c % b][i % c] = numbers[i];
    return whole;
}

/// With the first two axes in the other order.
json exchanged(const json& array) {
    json turned(array[0].size(), json(array.size(), 0));
    for (std::size_t i = 0; i < array.size(); ++i)
        for (std::size_t j = 0; j < array[i].size(); ++j) turned[j][i] = array[i][j];
    return turned;
}

TEST_CASE("check: the search finds heads and keys that were reshaped in place of transposed") {
    constexpr std::size_t heads = 3, queries = 4, keys = 5, d = 6;
    const auto drawn = [](std::size_t tokens, double step) {
        std::vector<double> numbers;
        for (std::size_t i = 0; i < heads * tokens * d; ++i)
            numbers.push_back(std::sin(step * static_cast<double>(i * i + 1)));
        return reshaped(numbers, heads, tokens, d);
    };
    const json query = drawn(queries, 1), key = drawn(keys, 2), value = drawn(keys, 3);
    const auto of = [](const json& q, const json& k, const json& v) {
        std::ofstream("request.json") << json{{"query", q}, {"key", k}, {"value", v}};
        return Words{"sdpa", "request.json"};
    };
    const auto report = [&](const json& arrays) { return searched(of(query, key, value), arrays); };

    // (tokens, heads * d) that is read as (heads, tokens, d).
    const auto joined = [](const json& x) { return reshaped(exchanged(x), heads, x[0].size(), d); };
    const json split = answer(of(joined(query), joined(key), joined(value)));
    CHECK(best_match(report(split)) == "heads_split");
    // (heads, tokens, d) that is read as (tokens, heads, d).
    const auto apart = [](const json& x) { return exchanged(reshaped(x, x[0].size(), heads, d)); };
    CHECK(best_match(report(answer(of(apart(query), apart(key), apart(value))))) == "heads_split");
    const auto merged = [](const json& result) {
        const json whole = reshaped(result["context_vectors"], 1, queries, heads * d);
        return json{{"context_vectors", whole[0]}};
    };
    CHECK(best_match(report(merged(answer(of(query, key, value))))) == "heads_split");
    CHECK(best_match(report(merged(split))) == "heads_split");

    json columns = json::array();
    for (const json& head : reshaped(key, heads, d, keys)) columns.push_back(exchanged(head));
    CHECK(best_match(report(answer(of(query, columns, value)))) == "transposed");
}

TEST_CASE("check: the search fits numbers that no list has") {
    const Words question{"causal", "--randn", "8,4", "--d-out", "8"};
    for (const std::string type : {"float32", "float64"}) {
        const Words typed = question + Words{"--dtype", type};
        for (const char* array : {"context_vectors", "attention_weights"})
            CHECK(best_match(searched(typed, only(answer(typed + Words{"--scale", "0.0442"}),
                                                  array))) == "scale --scale 0.0442");
        const Words capped = typed + Words{"--softcap"};
        CHECK(best_match(searched(capped + Words{"0.2"}, answer(capped + Words{"0.137"}))) ==
              "softcap --softcap 0.137");
        const Words turned = typed + Words{"--rope", "half", "--rope-base"};
        CHECK(best_match(searched(turned + Words{"10000"}, answer(turned + Words{"37000"}))) ==
              "rope_base --rope-base 37000");
    }
    // The bounds of bfloat16 also hold scales of the list, and what they leave is mostly rounding.
    for (const std::string scale : {"0.07", "0.33"}) {
        const Words rounded{"--scale", scale, "-o", "theirs.safetensors", "--store", "bfloat16"};
        REQUIRE(run_attn(question + rounded).code == 0);
        const Outcome outcome =
            run_attn(Words{"check"} + question +
                     words_in("--scale 0.7 --against theirs.safetensors --search --format json"));
        CHECK(best_match(json::parse(outcome.out)) == "scale --scale " + scale);
    }
    // Equal weights are those of any scale that is small enough.
    const json weights(8, std::vector<double>(8, 0.125));
    CHECK(best_match(searched({"self", "--randn", "8,4", "--d-out", "8"},
                              {{"attention_weights", weights}})) == "");
}

TEST_CASE("check: the search reads axes that fit in several orders in each") {
    const Words question = words_in("multihead --randn 3,4 --d-out 12 --heads 3");
    const json heads =
        answer(question + Words{"--rope", "interleaved", "--emit", "head_outputs"})["head_outputs"];
    json tokens = json::array({json::array(), json::array(), json::array()});
    for (const json& head : heads)
        for (std::size_t token = 0; token < 3; ++token) tokens[token].push_back(head[token]);
    const json report = searched(question + Words{"--rope", "half"}, {{"head_outputs", tokens}});
    CHECK(best_match(report) == "rope_pairs --rope interleaved");
    CHECK(report["arrays"][0]["axes"] == json{"q_len", "heads", "d_v"});
}

TEST_CASE("check: the search sees dropout that dropped nothing") {
    const Words few = words_in("self --randn 2,4 --d-out 2 --dtype float64");
    const std::vector<double> weights = flat(answer(few)["attention_weights"]);
    auto at = weights.begin();
    const json kept = nested({2, 2}, [&] { return *at++ / (1 - 0.2); });
    const json report = searched(few, {{"attention_weights", kept}});
    CHECK(best_match(report) == "dropout");
    CHECK(report["matches"][0]["changes"][0]["found"] == "p = 0.2");
}

TEST_CASE("check: the search finds dropout of a GPU of fewer threads") {
    const Words question = words_in("sdpa --randn 1,410,2 --dropout 0.5 --dropout-seed 1");
    const json theirs = answer(question + words_in("--dropout-stream cuda --gpu t4"));
    CHECK(best_match(searched(question, only(theirs, "context_vectors"))) ==
          "dropout_draws --dropout-stream cuda --gpu t4");
}

TEST_CASE("check: weights that are all zero are not those of dropout") {
    const json zeros(6, std::vector<double>(6, 0.0));
    const json report = searched({"self", "--randn", "6,4"}, {{"attention_weights", zeros}});
    REQUIRE(report.contains("matches"));
    for (const json& match : report["matches"])
        for (const json& change : match["changes"]) CHECK(change["convention"] != "dropout");
}

TEST_CASE("check: the report has a line for each set of conventions, and what was asked") {
    std::size_t reports = 0;
    for (const char* const input : {"2,2", "4,2", "6,4"})
        for (const Words& changed : {Words{"--scale", "2"}, Words{"--window", "0"},
                                     Words{"--softcap", "0.5"}, Words{"--sink", "0.5"}}) {
            const Words question{"causal",  "--randn", input,     "--d-out", "2",
                                 "--scale", "0.3",     "--dtype", "float64"};
            const json matches = searched(question, answer(question + changed))["matches"];
            CAPTURE(input);
            if (matches.empty()) continue;
            ++reports;
            std::set<json> sets;  // without the best one's line
            for (std::size_t i = 0; i < matches.size(); ++i) {
                json set = json::array();
                for (const json& change : matches[i]["changes"]) {
                    set.push_back(change["convention"]);
                    if (change["convention"] == "scale") CHECK(change["asked"] == "0.3");
                }
                if (i != 0) sets.insert(set);
            }
            const std::string text =
                run_attn(Words{"check"} + question + Words{"--against", "theirs.json", "--search"})
                    .out;
            std::size_t listed = 0, others = 0;
            for (const std::string& line : lines_of(text)) {
                const bool is_match = line.starts_with("matches with ");
                if (!is_match && !line.starts_with("indistinguishable: ")) continue;
                CHECK(contains(line, " (asked: "));
                ++listed;
                const std::size_t more = line.find("; and ");
                if (more != std::string::npos) others += std::stoul(line.substr(more + 6));
            }
            CHECK(listed == 1 + sets.size());
            CHECK(listed + others == matches.size());
        }
    CHECK(reports >= 6);
}

TEST_CASE("check: the search finds other draws of the parameters, by themselves and together") {
    for (const std::string mode : {"self", "multihead"})
        for (const auto& [flags, found] :
             {std::pair("--seed 123", "seed --seed 123"),
              {"--init xavier_uniform", "init --init xavier_uniform"},
              {"--draw-order key,query,value", "exchanged --draw-order key,query,value"},
              {"--qkv-bias", "qkv_bias --qkv-bias"},
              {"--device cuda", "rng --rng cuda"},
              {"--qkv-joined --qkv-bias", "qkv_joined --qkv-joined, qkv_bias --qkv-bias"},
              {"--seed 1337 --draw-order value,key,query",
               "seed --seed 1337, draw_order --draw-order value,key,query"},
              {"--seed 42 --init rand --qkv-bias",
               "seed --seed 42, init --init rand, qkv_bias --qkv-bias"},
              {"--seed 5", ""}})
            for (const std::string input : {"--example journey", "--randn 2,5,3"}) {
                const Words question = words_in(mode + " " + input),
                            theirs_asked = question + words_in(flags);
                CAPTURE(theirs_asked);
                const json theirs = answer(theirs_asked);
                CHECK(best_match(searched(question, only(theirs, "context_vectors"))) == found);
                // Other draws may lack some of these, or have them in another order of axes.
                const json all = answer(theirs_asked + words_in("--emit all"));
                CHECK(searched(question, all)["verdict"] == "wrong");
            }
}

TEST_CASE("check: the search names the flag for the other layout of a joined tensor") {
    const Words layer = words_in("multihead --randn 5,8 --heads 2 --no-causal --scale 0.5"),
                question = layer + words_in("--rope none --weights timm.safetensors");
    output_of(layer + words_in("--qkv-bias --save-family timm --save-weights timm.safetensors"));
    for (const std::string asked : {"parts", "heads"}) {
        const Words other{"--qkv-layout", asked == "parts" ? "heads" : "parts"};
        CHECK(best_match(searched(question + Words{"--qkv-layout", asked},
                                  only(answer(question + other), "attention_weights"))) ==
              "heads_split " + other[0] + " " + other[1]);
    }
}

TEST_CASE("check: no mask at all is named before masks that hide nothing") {
    for (const std::string left : {"0", "1", "2", "3"})
        for (const std::string right : {"-1", "0", "1"})
            for (const bool is_causal : {false, true}) {
                if (is_causal && right == "-1") continue;
                const Words question = words_in("sdpa --query q.json --key q.json --value q.json");
                json rows;
                for (int i = 0; i < 6; ++i)
                    rows.push_back({std::sin(i), std::cos(3 * i), std::sin(7 * i + 1)});
                std::ofstream("q.json") << rows;
                const json theirs = answer(question);
                const Words asked = question + Words{"--window", left + "," + right} +
                                    (is_causal ? Words{"--causal"} : Words{});
                CAPTURE(asked);
                CHECK(best_match(searched(asked, theirs)) ==
                      (is_causal ? "causal --no-causal, window_left --window -1,-1"
                                 : "window_left --window -1,-1"));
            }
}

}  // namespace
}  // namespace check_search_test
