// The real binary with good input: commands, formats, pipes, help.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace cli_test {

using namespace attn::test;
using nlohmann::json;

namespace {

const std::string journey_csv =
    "token,x1,x2,x3\nYour,0.43,0.15,0.89\njourney,0.55,0.87,0.66\nstarts,0.57,0.85,0.64\n"
    "with,0.22,0.58,0.33\none,0.77,0.25,0.10\nstep,0.05,0.80,0.55\n";

Outcome good(const Words& arguments, const std::string& input = "") {
    Outcome outcome = run_attn(arguments, input);
    CHECK(outcome.err == "");
    CHECK(outcome.code == 0);
    return outcome;
}

/// A result without what differs when the same numbers come in another way.
json arrays_of(json result) {
    for (const char* key : {"config", "tokens", "id"}) result.erase(key);
    return result;
}

}  // namespace

TEST_CASE("cli: a csv file, standard input, '-' and the built-in example give the same numbers") {
    scratch_folder();
    write_text("journey.csv", journey_csv);
    const Words flags{"--d-out", "2", "--seed", "789"};
    const json from_file = answer(with({"self", "journey.csv"}, flags));
    CHECK(from_file["tokens"][1] == "journey");
    for (const auto& [arguments, input] :
         {std::pair(Words{"self"}, journey_csv),
          {{"self", "-"}, journey_csv},
          {{"self", "--example", "journey"}, ""},
          {{"self", "-"},
           "[[0.43,0.15,0.89],[0.55,0.87,0.66],[0.57,0.85,0.64],[0.22,0.58,0.33],"
           "[0.77,0.25,0.1],[0.05,0.8,0.55]]"}})
        CHECK(arrays_of(answer(with(arguments, flags), input)) == arrays_of(from_file));
}

TEST_CASE("cli: one row of an earlier layer keeps the label of its token") {
    const Outcome row = run_shell("attn self --example journey --token 2 | attn self");
    CHECK(row.code == 0);
    CHECK(json::parse(row.out)["tokens"] == json({"starts"}));
}

TEST_CASE("cli: a request document, and flags that win over it") {
    const std::string request =
        R"({"id": "a1", "mode": "causal", "inputs": [[0.43, 0.15, 0.89], [0.55, 0.87, 0.66]],
            "tokens": ["Your", "journey"], "d_out": 2, "seed": 123, "dropout": 0.5,
            "emit": ["context_vectors", "scores"]})";
    const json result = answer({"causal"}, request);
    CHECK(result["id"] == "a1");
    CHECK(result["tokens"] == json({"Your", "journey"}));
    CHECK(result.contains("scores"));
    CHECK_FALSE(result.contains("attention_weights"));
    const json other = answer({"causal", "--dropout", "0", "--emit", "dropout_mask"}, request);
    CHECK(other["config"]["dropout"] == 0.0);
    CHECK(other["dropout_mask"] == json({{1, 1}, {1, 1}}));
    CHECK_FALSE(other.contains("scores"));
}

TEST_CASE("cli: null in a request is the default") {
    CHECK(answer({"self"}, R"({"inputs": [[1, 2]], "d_out": null, "id": null})") ==
          answer({"self"}, R"({"inputs": [[1, 2]]})"));
}

TEST_CASE("cli: precision, nonfinite and pretty shape the JSON") {
    const Words ask{"causal", "--example", "journey",       "--d-out",     "1", "--token",
                    "0",      "--emit",    "masked_scores", "--precision", "3"};
    CHECK(contains(good(with(ask, {"--nonfinite", "null"})).out, ",null,null,null,null,null]]"));
    CHECK(contains(good(with(ask, {"--nonfinite", "literal"})).out, ",-Infinity]]"));
    CHECK(contains(good(with(ask, {"--pretty"})).out, "\n  \"masked_scores\": [\n    ["));
}

TEST_CASE("cli: the sentence example is --text with the same words") {
    json example = answer({"self", "--example", "sentence", "--embed-seed", "123"});
    const json text =
        answer({"self", "--text", "Life is short, eat dessert first", "--embed-seed", "123"});
    CHECK(example == text);
    CHECK(example["config"]["vocab_size"] == 50000);
    json config = example["config"];
    CHECK(answer({"self"}, config.dump()) == example);
}

TEST_CASE("cli: labels of a request win over the words of its text") {
    const json result = answer({"self"}, R"({"text": "a b", "tokens": ["x", "y"]})");
    CHECK(result["tokens"] == json({"x", "y"}));
    CHECK(answer({"self"}, result["config"].dump()) == result);
}

TEST_CASE("cli: a reader that goes away ends the program quietly") {
    const Outcome outcome = run_shell(
        "(trap '' PIPE; attn self --text \"$(seq 1 600 | tr '\\n' ' ')\" --emit all; echo $? >&2)"
        " | head -c 10");
    CHECK(outcome.err == "0\n");
    CHECK(outcome.out.size() == 10);
}

TEST_CASE("cli: the examples of every help page run") {
    scratch_folder();
    write_text("tokens.csv", journey_csv);
    write_text("tokens.json", "[[1,2,3,4],[5,6,7,8]]");
    write_text("request.json", R"({"inputs": [[1,2,3,4],[5,6,7,8]]})");
    run_attn({"causal", "tokens.csv", "-o", "result.json"});
    for (const char* name : {"q.json", "k.json", "v.json"}) write_text(name, "[[1,2],[3,4]]");
    int examples = 0;
    for (const char* mode : {"", "self ", "causal ", "multihead ", "cross ", "sdpa ", "compare "}) {
        const std::string text = run_shell(std::string("attn ") + mode + "--help").out;
        const std::string block = text.substr(text.find("Examples:\n") + 10);
        for (std::size_t at = 0; block[at] == ' ';) {
            const std::size_t end = block.find('\n', at);
            const std::string line = block.substr(at, end - at);
            CAPTURE(line);
            const Outcome outcome = run_shell(line);
            // compare's 1 means that its inputs differ.
            CHECK(outcome.code <= (!contains(line, "compare") ? 0 : 1));
            CHECK(outcome.err == "");
            at = end + 1;
            ++examples;
        }
    }
    CHECK(examples >= 18);
}

}  // namespace cli_test
