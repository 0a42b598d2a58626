// The explanation of a result of linear attention: the step of the query is that of the question's
// own explanation.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

#include "tests/support/linear_question.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"
#include "tests/support/walk_text.hpp"

namespace explain_linear_test {

using namespace attn::test;
using nlohmann::json;

namespace {

json rows(linear::Dice& dice, std::size_t rows, std::size_t columns, double low, double high) {
    json all = json::array();
    for (std::size_t i = 0; i < rows; ++i) {
        json row = json::array();
        for (std::size_t j = 0; j < columns; ++j) row.push_back(dice.uniform(low, high));
        all.push_back(row);
    }
    return all;
}

}  // namespace

TEST_CASE("explain result: a step of linear attention is that of the question's explanation") {
    scratch_folder();
    for (std::uint32_t seed = 0; seed < cases(60); ++seed) {
        linear::Dice dice(seed);
        const std::size_t tokens = dice.among<std::size_t>({1, 2, 5});
        json request{{"mode", "linear"}, {"query", rows(dice, tokens, 3, -1, 1)}};
        request["key"] = rows(dice, tokens, 3, -1, 1);
        request["value"] = rows(dice, tokens, 2, -2, 2);
        request["qk_norm"] = true;
        const int decay = dice.among({0, 1, 2, 3});
        if (decay == 1) request["decay"] = -0.25;
        if (decay == 2) request["decay"] = rows(dice, tokens, 1, -1, 0);
        if (decay == 3) request["decay"] = rows(dice, tokens, 3, -1, 0);
        const int beta = dice.among({0, 1, 2});
        if (beta == 1) request["beta"] = 0.5;
        if (beta == 2) request["beta"] = rows(dice, tokens, 1, 0, 1);
        const bool has_past = dice.among({true, false, false});
        if (has_past) request["past_state"] = rows(dice, 3, 2, -1, 1);
        write_text("question.json", request.dump());
        const std::string emit = dice.among<std::string>(
            {"all", "all", "attention_weights,queries,keys,values,context_vectors",
             "attention_weights,queries,keys,values,states,context_vectors",
             "attention_weights,states,queries"});
        const std::string file = dice.among<std::string>({"r.json", "r.npz"}),
                          token = std::to_string(dice.among({std::size_t{0}, tokens - 1}));
        CAPTURE(request.dump());
        CAPTURE(emit);
        CAPTURE(token);
        good({"linear", "question.json", "--emit", emit, "-o", file});
        const Words how{"--token", token, "--precision", "5"};
        const std::string page = good(Words{"explain", file} + how),
                          own = good(Words{"explain", "linear", "question.json"} + how);
        const bool has_states = emit == "all" || emit.find("states") != emit.npos;
        if (emit == "all") CHECK(numbers_of(page) == numbers_of(own));
        CHECK(says(page, "What is written") == (emit == "all"));
        CHECK(says(page, "The state before") == (emit == "all" || (has_states && token != "0")));
        CHECK(says(page, "The state after") == has_states);
        CHECK(says(page, "has no array query, which its question needs") == (emit != "all"));
        if (tokens > 1 && token == "0") CHECK(says(page, " . "));
    }
}

}  // namespace explain_linear_test
