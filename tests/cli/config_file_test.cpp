// --config takes the config of a result, or the result: the same inputs then give the same bytes.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace config_file_test {

using namespace attn::test;
using Json = nlohmann::ordered_json;

TEST_CASE("config: of inputs in files, of words and of a model") {
    scratch_folder();
    const auto check = [](const Words& words, const Words& flags) {
        const Outcome first = run_attn(words + flags);
        REQUIRE_MESSAGE(first.code == 0, first.err);
        write_text("result.json", first.out);
        write_text("config.json", Json::parse(first.out)["config"].dump());
        for (const char* file : {"config.json", "result.json"}) {
            const Outcome again = run_attn(words + Words{"--config", file});
            CAPTURE(words[1]);
            CHECK(again.err == first.err);
            CHECK(again.out == first.out);
        }
    };
    check({"causal", data_path("journey.csv")},
          {"--d-out", "2", "--seed", "5", "--dropout", "0.5"});
    check({"self", "--example", "journey"}, {"--d-out", "2", "--token", "journey"});
    check({"self"}, {"--text", "b, a \"b\" [c", "--embed-seed", "3", "--embed-dim", "4"});
    for (const char* model : {"gpt2", "llama"})
        check({"multihead", "--token-ids", "1,2,3"},
              {"--weights", data_path("models/") + model, "--emit", "all"});
}

TEST_CASE("config: the command line and the request come first, the environment last") {
    scratch_folder();
    write_text("c.json", R"({"mode": "self", "id": "c", "d_out": 2, "seed": 1})");
    const auto config_of = [](const std::string& line) {
        const Outcome outcome = run_shell(line);
        REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
        return Json::parse(outcome.out)["config"];
    };
    CHECK(config_of("attn self --example journey --config c.json")["id"] == "c");
    CHECK(config_of("attn self --example journey --config c.json --seed 2")["seed"] == 2);
    write_text("r.json", R"({"id": "r", "seed": 3, "inputs": [[1, 2], [3, 4]]})");
    const Json of_request = config_of("attn self r.json --config c.json");
    CHECK(of_request["id"] == "r");
    CHECK(of_request["seed"] == 3);
    CHECK(of_request["d_out"] == 2);
    // Of all the environment's flags those of the mode, and nothing of another command.
    write_text("e.json", R"({"seed": 4, "rng_skip": 9, "heads": 3, "jobs": 3})");
    const Json of_environment =
        config_of("ATTN_CONFIG=e.json attn self --example journey --config c.json");
    CHECK(of_environment["seed"] == 1);
    CHECK(of_environment["rng_skip"] == 9);
    CHECK(config_of("ATTN_CONFIG=e.json attn multihead --example journey")["heads"] == 3);
    write_text("m.json", "[[1, 2]]");
    CHECK(run_shell("ATTN_CONFIG=e.json attn compare m.json m.json").code == 0);
}

TEST_CASE("config: a batch takes the settings of a result, not its id") {
    scratch_folder();
    REQUIRE(run_shell("attn self --example pair --d-out 2 --seed 3 -o result.json").code == 0);
    const Outcome outcome = run_attn({"batch", "--config", "result.json"}, "[[1,2],[3,4]]\n");
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    const Json answer = Json::parse(outcome.out);
    CHECK(answer["id"] == 1);
    CHECK(answer["config"]["seed"] == 3);
}

}  // namespace config_file_test
