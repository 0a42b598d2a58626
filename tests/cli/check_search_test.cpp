// attn check --search, through the real binary: numbers that no list has, axes that fit in several
// orders, dropout, and results that no conventions explain.
#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

using namespace attn::test;
using nlohmann::json;

namespace {

json answer(const Words& question) {
    const Outcome outcome = run_attn(question + Words{"--format", "json"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
}

/// The report on arrays that are wrong.
json searched(const Words& question, const json& arrays) {
    std::ofstream("theirs.json") << arrays;
    const Outcome outcome =
        run_attn(Words{"check"} + question +
                 Words{"--against", "theirs.json", "--search", "--format", "json"});
    CAPTURE(outcome.out);
    CHECK(outcome.err == "");
    REQUIRE(outcome.code == 1);
    return json::parse(outcome.out);
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

/// Of arrays of numbers, each multiplied by what `factor` returns.
template <class Factor>
json times(const json& array, Factor& factor) {
    if (array.is_number()) return array.get<double>() * factor();
    json product = json::array();
    for (const json& part : array) product.push_back(times(part, factor));
    return product;
}

}  // namespace

TEST_CASE("check: the search fits numbers that no list has") {
    scratch_folder();
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
    // Equal weights are those of any scale that is small enough.
    const json weights(8, std::vector<double>(8, 0.125));
    CHECK(best_match(searched({"self", "--randn", "8,4", "--d-out", "8"},
                              {{"attention_weights", weights}})) == "");
}

TEST_CASE("check: the search reads axes that fit in several orders in each") {
    scratch_folder();
    const Words question{"multihead", "--randn", "3,4", "--d-out", "12", "--heads", "3"};
    const json heads =
        answer(question + Words{"--rope", "interleaved", "--emit", "head_outputs"})["head_outputs"];
    json tokens = json::array({json::array(), json::array(), json::array()});
    for (const json& head : heads)
        for (std::size_t token = 0; token < 3; ++token) tokens[token].push_back(head[token]);
    const json report = searched(question + Words{"--rope", "half"}, {{"head_outputs", tokens}});
    CHECK(best_match(report) == "rope_pairs --rope interleaved");
    CHECK(report["arrays"][0]["axes"] == json{"q_len", "heads", "d_v"});
}

TEST_CASE("check: the search sees dropout that dropped nothing, or behind another mask") {
    scratch_folder();
    const Words few{"self", "--randn", "2,4", "--d-out", "2", "--dtype", "float64"};
    const auto kept = [] { return 1 / (1 - 0.2); };
    const json report =
        searched(few, {{"attention_weights", times(answer(few)["attention_weights"], kept)}});
    CHECK(best_match(report) == "dropout");
    CHECK(report["matches"][0]["changes"][0]["found"] == "p = 0.2");

    std::ofstream("keys.json") << "[[true, false, false, true, true, true, false, true]]";
    const Words masked{"self",      "--randn",    "8,4", "--d-out", "2", "--key-padding-mask",
                       "keys.json", "--mask-true"};
    CHECK(best_match(searched(masked + Words{"keep"},
                              answer(masked + Words{"drop", "--dropout", "0.3"}))) ==
          "mask_polarity --mask-true drop, dropout");
}

TEST_CASE("check: a sink that was scaled is found with another scale") {
    scratch_folder();
    const Words question{"self", "--randn", "6,4", "--d-out", "4", "--scale"};
    CHECK(best_match(searched(question + Words{"0.5", "--sink", "0.3"},
                              answer(question + Words{"2", "--sink", "0.6"}))) ==
          "scale --scale 2, sink --sink=0.6");
}

TEST_CASE("check: noise matches nothing, whatever the masked scores are") {
    scratch_folder();
    std::ofstream("keys.json") << "[[true, false, false, true, true, true, false, true]]";
    const Words question{
        "multihead",          "--randn",   "8,4",         "--d-out", "8", "--heads", "2", "--alibi",
        "--key-padding-mask", "keys.json", "--mask-true", "keep"};
    int sign = 1;
    const auto noise = [&] { return 1 + 1e-3 * (sign = -sign); };
    const json wrong = answer(question + Words{"--no-out-bias"});
    // Bounds of float64 are narrower.
    CHECK(best_match(searched(question + Words{"--type", "float32"},
                              {{"context_vectors", times(wrong["context_vectors"], noise)}})) ==
          "");
}
