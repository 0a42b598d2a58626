// attn linear through the real binary: shapes and single tokens. By hand, and its constants in
// every form: same_answers.txt.
#include <doctest/doctest.h>

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

TEST_CASE("linear: packed and 4-D operands are the same question") {
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
