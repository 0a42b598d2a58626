// attn linear through the real binary: constants and files, shapes, states handed on, errors, and
// what other commands make of its results.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/support.hpp"

namespace cli_linear_test {

using namespace attn::test;
using nlohmann::json;

namespace {

/// Multiples of 1/8, exact in float32.
json drawn(const std::vector<std::size_t>& shape, std::uint32_t seed) {
    std::mt19937 engine(seed);
    return nested(shape, [&] { return (static_cast<double>(engine() % 17) - 8) / 8; });
}

/// (1, heads, tokens, d) to (1, tokens, heads * d).
json packed(const json& x) {
    json rows = json::array();
    for (std::size_t t = 0; t < x[0][0].size(); ++t) {
        json row = json::array();
        for (const json& head : x[0])
            for (const json& value : head[t]) row.push_back(value);
        rows.push_back(row);
    }
    return json::array({rows});
}

}  // namespace

TEST_CASE("linear: the rule by hand") {
    const std::string qkv = R"("query": [[1, 0], [1, 1]], "key": [[1, 0], [1, 0]],
                               "value": [[2], [5]], "scale": 1)";
    const auto states = [&](const std::string& more) {
        return answer({"linear", "--emit", "all"}, "{" + qkv + more + "}");
    };
    json result = states("");
    CHECK(result["config"]["rule"] == "linear");
    CHECK(result["states"] == json::parse("[[[2],[0]],[[7],[0]]]"));
    CHECK(result["attention_weights"] == json::parse("[[1,0],[1,1]]"));
    CHECK(result["context_vectors"] == json::parse("[[2],[7]]"));
    CHECK(result["layout"]["axes"]["states"] == json({"q_len", "d_k", "d_v"}));
    result = states(R"(, "beta": 1)");
    CHECK(result["config"]["rule"] == "delta");
    CHECK(result["present_state"] == json::parse("[[5],[0]]"));  // the new value replaces the old
    CHECK(result["attention_weights"] == json::parse("[[1,0],[0,1]]"));
    result = states(R"(, "beta": [0.5], "decay": 0)");
    CHECK(result["config"]["rule"] == "gated_delta");
    CHECK(result["present_state"] == json::parse("[[3],[0]]"));  // 1, then halfway to 5
    result = states(R"(, "decay": [["-Infinity"], ["-Infinity"]])");
    CHECK(result["config"]["rule"] == "gated");
    CHECK(result["present_state"] == json::parse("[[5],[0]]"));
    result = states(R"(, "past_state": [[10], [1]])");
    CHECK(result["context_vectors"] == json::parse("[[12],[18]]"));
    CHECK(result["attention_weights"] == json::parse("[[1,0],[1,1]]"));  // without the past
}

TEST_CASE("linear: packed, 4-D and constant operands are the same question") {
    scratch_folder();
    const json q = drawn({1, 4, 7, 3}, 1), k = drawn({1, 2, 7, 3}, 2), v = drawn({1, 2, 7, 2}, 3);
    for (const bool by_dimension : {false, true}) {
        const json g = drawn({1, 2, 7, by_dimension ? 3U : 1U}, 4), b = drawn({1, 2, 7, 1}, 5);
        const json request{{"query", q},
                           {"key", k},
                           {"value", v},
                           {"decay", g},
                           {"beta", b},
                           {"qk_norm", true},
                           {"emit", {"context_vectors", "present_state"}}};
        const json whole = answer({"linear"}, request.dump());
        json side_by_side = request;
        for (const char* key : {"query", "key", "value", "decay", "beta"})
            side_by_side[key] = packed(request[key]);
        side_by_side.update({{"heads", 4}, {"kv_heads", 2}});
        const json flat_result = answer({"linear"}, side_by_side.dump());
        CHECK(flat_result["present_state"] == whole["present_state"]);
        CHECK(flat_result["context_vectors"] == packed(whole["context_vectors"]));
        for (const char* key : {"query", "key", "value", "decay", "beta"})
            write_text(std::string(key) + ".json", request[key].dump());
        const json by_files = answer(
            words_in("linear --query query.json --key key.json --value value.json --decay "
                     "decay.json --beta beta.json --qk-norm --emit context_vectors,present_state"));
        CHECK(by_files["context_vectors"] == whole["context_vectors"]);
    }
    json request{{"query", q}, {"key", k}, {"value", v}, {"decay", {-0.25, -0.5}}, {"beta", 0.5}};
    const json constant = answer({"linear"}, request.dump());
    CHECK(constant["config"]["decay"] == json({-0.25, -0.5}));
    json each = json::array({json::array({json::array(), json::array()})}), rates = each;
    for (std::size_t t = 0; t < 7; ++t) {
        each[0][0].push_back({-0.25});
        each[0][1].push_back({-0.5});
        for (const std::size_t h : {0U, 1U}) rates[0][h].push_back({0.5});
    }
    request.update({{"decay", each}, {"beta", rates}});
    CHECK(answer({"linear"}, request.dump())["context_vectors"] == constant["context_vectors"]);
    json by_config = constant["config"];
    by_config.update({{"query", q}, {"key", k}, {"value", v}});
    CHECK(answer({"linear"}, by_config.dump()) == constant);
    request = {{"query", q}, {"key", k}, {"value", v}};
    CHECK(answer(words_in("linear - --decay -0.25,-0.5 --beta 0.5"),
                 request.dump())["context_vectors"] == constant["context_vectors"]);
    request["decay"] = each;  // a flag precedes the request's array
    CHECK(answer(words_in("linear - --decay -0.25,-0.5 --beta 0.5"),
                 request.dump())["config"]["decay"] == json({-0.25, -0.5}));
}

TEST_CASE("linear: a decay of -Infinity clears the state, in every form, and reads back") {
    scratch_folder();
    json request{{"query", drawn({2, 5, 3}, 4)},
                 {"key", drawn({2, 5, 3}, 5)},
                 {"value", drawn({2, 5, 2}, 6)}};
    const auto with = [&](const std::string& decay) {
        const std::string text = request.dump();
        return text.substr(0, text.size() - 1) + ", \"decay\": " + decay + "}";
    };
    const json each = answer({"linear"}, with(R"(["-Infinity", -0.5])"));
    CHECK(each["config"]["decay"] == json{"-Infinity", -0.5});
    for (const char* same : {"[-Infinity, -0.5]", R"(["-inf",-0.5])", R"("-Infinity, -0.5")"})
        CHECK(answer({"linear"}, with(same)) == each);
    for (const char* constants : {"-Infinity,-0.5", "-inf,-0.5"})
        CHECK(answer({"linear", "-", "--decay", constants}, request.dump()) == each);
    json columns = json::array({json::array(), json::array()});
    for (std::size_t t = 0; t < 5; ++t) {
        columns[0].push_back({"-Infinity"});
        columns[1].push_back({-0.5});
    }
    CHECK(answer({"linear"}, with(columns.dump()))["context_vectors"] == each["context_vectors"]);
    write_text("config.json", each["config"].dump());
    CHECK(answer({"linear", "-", "--config", "config.json"}, request.dump()) == each);
    const json all = answer({"linear"}, with("-Infinity"));
    CHECK(all["config"]["decay"] == json{"-Infinity"});
    for (const json& head : all["attention_weights"])
        for (std::size_t t = 0; t < 5; ++t)
            for (std::size_t s = 0; s < 5; ++s)
                if (s != t) CHECK(head[t][s] == 0);
}

TEST_CASE("linear: a layer projects its input, as self and cross do") {
    scratch_folder();
    const std::string journey = data_path("journey.csv");
    const json layer = answer({"linear", journey, "--d-out", "4", "--seed", "5", "--decay", "-0.1",
                               "--beta", "0.5", "--emit", "all"});
    const json self = answer({"self", journey, "--d-out", "4", "--seed", "5", "--emit", "all"});
    for (const char* array : {"W_query", "queries", "keys", "values"})
        CHECK(layer[array] == self[array]);
    json bare{{"query", layer["queries"]},
              {"key", layer["keys"]},
              {"value", layer["values"]},
              {"decay", -0.1},
              {"beta", 0.5}};
    CHECK(answer({"linear"}, bare.dump())["context_vectors"] == layer["context_vectors"]);
    const json heads = answer({"linear", journey, "--d-out", "4", "--heads", "2", "--emit", "all"});
    CHECK(heads["W_out"].size() == 4);
    CHECK(shape_of(heads["states"]) == std::vector<std::size_t>{2, 6, 2, 2});
    std::string gates;
    for (int t = 0; t < 6; ++t) gates += "-0.1,-0.2\n";
    write_text("gates.csv", gates);
    CHECK(answer({"linear", journey, "--heads", "2", "--d-out", "4", "--decay",
                  "gates.csv"})["context_vectors"] ==
          answer({"linear", journey, "--heads", "2", "--d-out", "4", "--decay",
                  "-0.1,-0.2"})["context_vectors"]);
}

TEST_CASE("linear: one token of a result") {
    scratch_folder();
    const std::string journey = data_path("journey.csv");
    const Words question{"linear", journey,  "--d-out", "2",        "--decay",
                         "-0.5",   "--beta", "0.5",     "--qk-norm"};
    const auto with = [&](const Words& more) { return question + more; };
    const json all = answer(with({"--emit", "all"}));
    for (std::size_t t = 0; t < 6; ++t) {
        const json one = answer(with({"--emit", "all", "--token", std::to_string(t)}));
        for (const char* array : {"context_vectors", "attention_weights", "states"})
            CHECK(one[array] == json::array({all[array][t]}));
        CHECK(one["present_state"] == all["present_state"]);
    }
    CHECK(run_attn({"linear", "-", "--emit", "all"}, "[[1, 2]]").code == 0);
}

}  // namespace cli_linear_test
