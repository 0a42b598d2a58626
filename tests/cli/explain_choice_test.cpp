// The query, heads and settings that an explanation shows, and the errors of wrong use.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/walk_text.hpp"

using namespace attn::test;
using nlohmann::json;

TEST_CASE("explain: a query in the middle, the first batch entry and few heads by default") {
    const std::string page = good({"explain", "self", "--example", "journey"});
    CHECK(page.starts_with("Query 2 \"starts\" of attn self\n"));
    CHECK(in_one_line(page).find("by default; --token I or --token LABEL shows another") !=
          std::string::npos);
    const std::string pair = good({"explain", "multihead", "--example", "pair", "--heads", "4"});
    CHECK(in_one_line(pair).find("Batch entry 0 of 2 is shown") != std::string::npos);
    CHECK(pair.find("\nHead 3\n") != std::string::npos);
    const std::string many = good({"explain", "multihead", "--example", "pair", "--heads", "8"});
    CHECK(in_one_line(many).find("Head 0 of 8 is shown") != std::string::npos);
    CHECK(many.find("\nHead 1\n") == std::string::npos);
    const std::string third =
        good({"explain", "multihead", "--example", "pair", "--heads", "4", "--head", "2"});
    CHECK(third.find("\nHead 2\n") != std::string::npos);
    CHECK(third.find("\nHead 1\n") == std::string::npos);
    CHECK(good({"explain", "--token", "1", "self", "--example", "journey"}) ==
          good({"explain", "self", "--example", "journey", "--token", "1"}));
}

TEST_CASE("explain: a causal mask blocks a key of the query that is shown by default") {
    scratch_folder();
    for (std::size_t queries = 1; queries <= 9; ++queries)
        for (std::size_t keys = 1; keys <= 9; ++keys)
            for (const char* align : {"top-left", "bottom-right"}) {
                const auto several = [&](std::size_t count) {
                    std::string text = "[[1,2]";
                    for (std::size_t i = 1; i < count; ++i)
                        text += ",[0." + std::to_string(i) + ",1]";
                    return text + "]";
                };
                CAPTURE(queries);
                CAPTURE(keys);
                CAPTURE(align);
                const std::string page = good(
                    {"explain", "cross", "--causal", "--causal-align", align},
                    R"({"inputs": )" + several(queries) + R"(, "context": )" + several(keys) + "}");
                // Alone with its keys, or behind all of them, a query sees every one.
                const bool can_block = std::string(align) == "top-left" ? keys > 1 : queries > 1;
                const std::vector<double> mask = table_row(page, "mask");
                CHECK(mask.size() == keys);
                if (can_block) CHECK(std::count(mask.begin(), mask.end(), 0.0) > 0);
            }
}

TEST_CASE("explain: a query is named by its label, where one token has it") {
    const Words ask{"explain", "causal", "--text", "the cat saw the dog 3"};
    CHECK(good(ask + Words{"--token", "saw"}).starts_with("Query 2 \"saw\""));
    CHECK(good(ask + Words{"--token", "2"}).starts_with("Query 2 \"saw\""));
    CHECK(good(ask + Words{"--token", "3"}).starts_with("Query 3 \"the\""));
    CHECK(good({"explain", "self", data_path("journey.csv"), "-t", "with"})
              .starts_with("Query 3 \"with\""));
}

TEST_CASE("explain: a request's settings apply, and its output options are ignored") {
    const json result = json::parse(
        good({"causal", "--example", "journey", "--emit", "all", "--nonfinite", "null"}));
    json request = result["config"];
    request["inputs"] = result["inputs"];
    CHECK(good({"explain", "causal", "-", "--token", "3"}, request.dump()).find("Query 3") == 0);
    request["kernel"] = "generic";
    CHECK(run_attn({"explain", "causal"}, request.dump()).code == 2);
}

TEST_CASE("explain: wrong use is refused in one line") {
    const Words self{"self", "--example", "journey"};
    struct Case {
        Words arguments;
        const char* error;
    };
    for (const Case& bad : std::vector<Case>{
             {{"selfish"}, "selfish: is neither a mode nor a file; expected self, causal"},
             {{"selfish", "a.csv"}, "selfish: is not a mode; expected self, causal"},
             {self + Words{"--token", "6"}, "--token 6: there are 6 tokens; expected 0 to 5"},
             {self + Words{"--token", "nope"},
              "--token nope: no token has this label; expected Your, journey, starts, with, one, "
              "step, or an integer from 0 to 5"},
             {{"self", "--text", "a b a", "--token", "a"},
              "--token a: 2 tokens have this label; expected the index of one: 0, 2"},
             {{"multihead", "--example", "pair", "--heads", "2", "--token", "a"},
              "--token a: the tokens have no labels; expected an integer from 0"},
             {self + Words{"--head", "1"}, "--head 1: there is one head; expected 0"},
             {self + Words{"--head", "x"}, "--head x: no such value; expected an integer"},
             {self + Words{"--batch", "1"}, "--batch 1: there is one batch entry; expected 0"},
             {{"multihead", "--example", "pair", "--heads", "2", "--head", "2"},
              "--head 2: there are 2 of them; expected 0 to 1"},
             {self + Words{"--emit", "scores"}, "--emit: no flag of attn explain"},
             {self + Words{"--average-heads"}, "--average-heads: no flag of attn explain"},
             {self + Words{"--no-pretty"}, "--no-pretty: no flag of attn explain"},
             {self + Words{"--nonfinite", "null"}, "--nonfinite: no flag of attn explain"},
             {self + Words{"--save-weights", "w.npz"}, "--save-weights: no flag of attn explain"},
             {self + Words{"--format", "json"},
              "--format json: no such value; expected text, markdown or html"},
             {self + Words{"-o", "walk.json"},
              "--output walk.json: an explanation is text, Markdown or HTML"},
             {self + Words{"--kernel", "generic"},
              "--kernel generic: a fused kernel records no steps; expected auto or reference"},
             {self + Words{"--heads", "2"}, "--heads 2: mode self has no such setting"},
             {self + Words{"--tokn", "2"},
              "--tokn: unknown flag; the nearest known one is --token"},
             {{"self", "a.csv", "b.csv"}, "b.csv: a second input; expected one"}}) {
        CAPTURE(joined(bad.arguments));
        const Outcome outcome = run_attn(Words{"explain"} + bad.arguments);
        CHECK(outcome.code == 2);
        CHECK(outcome.out == "");
        CHECK(outcome.err.starts_with("attn: error: " + std::string(bad.error)));
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    }
    CHECK(good({"help", "explain"}).starts_with(good({"explain", "--help"})));
    CHECK(good({"explain", "self", "--help"}).starts_with("attn explain: "));
}

TEST_CASE("explain: no step is named for what did not happen") {
    scratch_folder();
    const Words ask{"explain", "causal", "--example", "journey", "--token", "2"};
    const auto page = [&](const Words& more) {
        Words words = ask;
        words.insert(words.end(), more.begin(), more.end());
        return run_attn(words).out;
    };
    for (const Words& more : std::vector<Words>{{}, {"--window", "1,0"}, {"--kv-lengths", "4"}}) {
        CHECK(page(more).find("biased_scores") == std::string::npos);
        CHECK(table_row(page(more), "scores_left").size() == 6);
    }
    write_text("bias.json", "[[0.5, 0.25, 0, 1, 2, 3]]");
    for (const Words& more : std::vector<Words>{{"--alibi"}, {"--mask", "bias.json"}}) {
        CHECK(table_row(page(more), "scores_left").empty());
        CHECK(table_row(page(more), "biased_scores").size() == 6);
    }
}
