// Tokens of a layer's input that a mask hides from every query may hold NaN and infinities.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace masked_inputs_test {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("inputs: NaN in hidden tokens changes no other row, elsewhere it is an error") {
    std::mt19937 random(7);
    const auto below = [&](std::size_t count) { return random() % count; };
    const auto eighths = [&] { return static_cast<double>(below(9)) / 8; };
    std::size_t accepted = 0, refused = 0;
    for (std::size_t turn = 0; turn < 240; ++turn) {
        const bool is_batch = below(2) == 0;
        const std::size_t entries = is_batch ? 2 : 1, tokens = 3 + below(20);
        const std::string mode = Words{"self", "causal", "multihead", "cross"}[below(4)];
        const std::string source = mode == "cross" && below(2) == 0 ? "context" : "inputs";
        const auto rows = [&] {
            return nested({entries, tokens}, [&] {
                return json{eighths(), eighths() - 1, 0.5, -0.25};
            });
        };
        json x = rows(), context = rows(), request{{"mode", mode}};
        if (mode == "multihead" || below(3) == 0)
            if (mode == "multihead" || mode == "cross") request["heads"] = 2;
        request["kernel"] = Words{"auto", "reference", "generic"}[below(3)];
        request["dtype"] = below(2) == 0 ? "float32" : "float64";
        // The last tokens of each entry are padding.
        std::vector<std::size_t> valid;
        for (std::size_t b = 0; b < entries; ++b) valid.push_back(1 + below(tokens));
        const std::size_t way = below(5);
        json padding = json::array(), square = json::array();
        for (std::size_t b = 0; b < entries; ++b) {
            json row = json::array();
            for (std::size_t t = 0; t < tokens; ++t) row.push_back(t < valid[b]);
            padding.push_back(row);
            json matrix = json::array();
            for (std::size_t q = 0; q < tokens; ++q) matrix.push_back(row);
            square.push_back(json::array({matrix}));
        }
        if (way == 0) request["key_padding_mask"] = padding;
        if (way == 1) request["mask"] = square;
        if (way == 2) request["kv_lengths"] = valid;
        if (way == 3) {
            for (json& row : padding)
                for (json& cell : row) cell = cell == true ? json(0) : json("-Infinity");
            request["key_padding_mask"] = padding;
        }
        if (way < 2) request["mask_true"] = "keep";
        const std::size_t entry = below(entries), token = below(tokens), column = below(4);
        json spoilt = source == "context" ? context : x;
        spoilt[entry][token][column] = below(2) == 0 ? "NaN" : "Infinity";
        const auto in_rank = [&](const json& array) { return is_batch ? array : array[0]; };
        const auto with_source = [&](const json& from) {
            json asked = request;
            asked["inputs"] = in_rank(source == "inputs" ? from : x);
            if (mode == "cross") asked["context"] = in_rank(source == "context" ? from : context);
            return asked;
        };
        const json clean = with_source(source == "context" ? context : x),
                   dirty = with_source(spoilt);
        CAPTURE(dirty.dump());
        // In cross attention INPUT holds queries, which no mask of keys hides.
        const bool is_hidden =
            way < 4 && token >= valid[entry] && (mode != "cross" || source == "context");
        const Outcome outcome = run_attn({mode}, dirty.dump());
        CAPTURE(outcome.err);
        if (!is_hidden) {
            ++refused;
            CHECK(outcome.code == 3);
            CHECK(contains(outcome.err, "finite"));
            CHECK(outcome.out.empty());
            continue;
        }
        ++accepted;
        REQUIRE(outcome.code == 0);
        const Outcome expected = run_attn({mode}, clean.dump());
        REQUIRE(expected.code == 0);
        json found = json::parse(outcome.out)["context_vectors"],
             wanted = json::parse(expected.out)["context_vectors"];
        for (json* all : {&found, &wanted})
            if (!is_batch) *all = json::array({*all});
        for (std::size_t b = 0; b < entries; ++b)
            for (std::size_t q = 0; q < tokens; ++q) {
                const bool is_own = mode != "cross" && b == entry && q == token;
                // Kernels do not fold the scale into queries where one is not finite.
                for (std::size_t i = 0; i < wanted[b][q].size(); ++i)
                    if (!is_own)
                        CHECK(found[b][q][i].get<double>() ==
                              doctest::Approx(wanted[b][q][i].get<double>()).epsilon(1e-5));
                    else if (spoilt[entry][token][column] == "NaN")
                        CHECK(found[b][q][i] == "NaN");
            }
    }
    CHECK(accepted > 20);
    CHECK(refused > 20);
}

}  // namespace masked_inputs_test
