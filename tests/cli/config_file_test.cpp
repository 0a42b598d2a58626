// --config takes the config of a result, or the result: the same inputs then give the same bytes.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <random>
#include <string>
#include <vector>

#include "core/plan/modes.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace config_file_test {

using namespace attn;
using namespace attn::test;
using Json = nlohmann::ordered_json;
namespace {

/// A question of this mode, with settings of every type drawn at random.
class Drawn {
public:
    Drawn(const ModeRow& mode, unsigned seed) : random_(seed) {
        Json rows = Json::array();
        for (int i = 0; i < 4; ++i) rows.push_back({0.5 * i, 1.25 - i, 0.75, -0.5 * i});
        for (const char* key : {"query", "key", "value"})
            if (!mode.projects(false)) inputs[key] = rows;
        if (mode.projects(false)) inputs["inputs"] = rows;
        if (mode.projects(false) && mode.context) inputs["context"] = rows;
        settings["mode"] = mode.name;
        const bool has_heads = mode.heads_axis != HeadsAxis::never;
        if (one_in(2)) settings["id"] = one_in(2) ? Json("a, \"b\"") : Json(-7);
        if (one_in(2)) settings["tokens"] = {"a,b", " c", "[\"d", "e"};
        if (has_heads && one_in(2)) {
            settings["heads"] = 2;
            if (one_in(2)) settings["kv_heads"] = 1;
            if (one_in(2)) settings["head"] = {1, 0};
            if (one_in(3)) settings["average_heads"] = true;
        }
        if (mode.projects(false)) {
            settings["d_out"] = 4;
            settings["seed"] = among({Json(0), -5, 18446744073709551615ULL, 3});
            if (one_in(3)) settings["init"] = among({Json("rand"), "mha", "xavier", "linear"});
            if (one_in(3)) settings["qkv_bias"] = true;
            if (one_in(4)) settings["rng_skip"] = 3;
            if (mode.mechanism == Mechanism::linear) {
                if (one_in(2)) settings["decay"] = among({Json(-0.5), Json::array({-0.25})});
                if (one_in(2)) settings["beta"] = among({Json(0.5), Json::array({1})});
                if (one_in(2)) settings["qk_norm"] = true;
            }
        }
        if (mode.name == "multihead" && one_in(3)) settings["out_bias"] = false;
        if (one_in(3)) settings["scale"] = among({Json(0.1), 1, 1e-30, -2.5});
        if (one_in(3)) settings["softcap"] = 30;
        if (one_in(3)) settings["alibi"] = true;
        if (one_in(3)) settings["sink"] = {0.30000000000000004};
        if (one_in(3)) settings["window"] = among({Json{1}, Json{2, 0}, Json{-1, 1}});
        if (one_in(3)) settings["kv_lengths"] = {3};
        if (one_in(4)) settings["mask_method"] = "renormalize";
        if (one_in(3)) settings["token"] = 2;
        if (one_in(3)) settings["dropout"] = 0.25;
        if (one_in(4)) settings.update({{"dropout_seed", -1}, {"dropout_skip", 5}});
        if (one_in(3)) settings["dtype"] = "float64";
        if (one_in(2)) settings["emit"] = {"scores", "attention_weights", "context_vectors"};
        if (one_in(4)) settings["precision"] = 3;
        if (one_in(4)) settings["pretty"] = true;
        if (one_in(4)) settings["nonfinite"] = "null";
        if (one_in(4)) settings["kernel"] = "reference";
    }

    Json inputs, settings;

private:
    bool one_in(unsigned n) { return random_() % n == 0; }
    Json among(const std::vector<Json>& all) { return all[random_() % all.size()]; }

    std::mt19937 random_;
};

}  // namespace

TEST_CASE("config: of any result, with the same inputs, it gives the same bytes") {
    scratch_folder();
    std::size_t good = 0;
    for (const ModeRow& mode : mode_rows)
        for (unsigned seed = 0; seed < 25; ++seed) {
            const Drawn drawn(mode, 1000 * unsigned(mode.mode) + seed);
            Json request = drawn.settings;
            request.update(drawn.inputs);
            CAPTURE(request.dump());
            write_text("request.json", request.dump());
            write_text("inputs.json", drawn.inputs.dump());
            const std::string name(mode.name);
            const Outcome first = run_attn({name, "request.json"});
            if (first.code != 0) continue;  // settings that exclude each other
            ++good;
            write_text("result.json", first.out);
            write_text("config.json", Json::parse(first.out)["config"].dump());
            for (const char* file : {"config.json", "result.json"}) {
                const Outcome again = run_attn({name, "inputs.json", "--config", file});
                CAPTURE(file);
                CHECK(again.err == "");
                CHECK(again.out == first.out);
            }
            const Outcome page =
                run_attn({"explain", name, "inputs.json", "--config", "config.json"});
            CHECK(page.code == (drawn.settings.contains("kernel") ? page.code : 0));
        }
    CHECK(good > 60);
}

TEST_CASE("config: of inputs in files, of words and of a model") {
    scratch_folder();
    const auto check = [](const Words& words, const Words& flags) {
        const Outcome first = run_attn(words + flags);
        REQUIRE_MESSAGE(first.code == 0, first.err);
        write_text("result.json", first.out);
        const Outcome again = run_attn(words + Words{"--config", "result.json"});
        CAPTURE(words[1]);
        CHECK(again.err == first.err);
        CHECK(again.out == first.out);
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
    write_text("e.json", R"({"seed": 4, "rng_skip": 9})");
    const Json of_environment =
        config_of("ATTN_CONFIG=e.json attn self --example journey --config c.json");
    CHECK(of_environment["seed"] == 1);
    CHECK(of_environment["rng_skip"] == 9);
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
