// Layers of published models against an independent float64 computation; see data/README.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

using namespace attn::test;
using nlohmann::json;

namespace {

std::string listed(const json& ids) {
    std::string text;
    for (const json& id : ids) text += (text.empty() ? "" : ",") + id.dump();
    return text;
}

/// A case with what it shares with another filled in.
json completed(const json& one, const json& all) {
    if (!one.contains("same_as")) return one;
    for (const json& other : all)
        if (other["id"] == one["same_as"]) {
            json merged = other;
            merged.update(one);
            return merged;
        }
    return one;
}

/// The command that computes a case. One head of the notebooks is mode self or causal.
std::vector<std::string> command_for(const json& c, bool causal) {
    const std::string family = c["family"], path = c["path"];
    const bool one_head = family == "notebook" && c["heads"] == 1;
    const bool has_config = family != "mha" && family != "notebook";
    std::vector<std::string> command{c.contains("context") ? "cross"
                                     : one_head            ? (causal ? "causal" : "self")
                                                           : "multihead"};
    const auto add = [&](const std::vector<std::string>& words) {
        command.insert(command.end(), words.begin(), words.end());
    };
    add({"--weights", data_path("models/" + path), "--emit", "all"});
    if (!has_config && !one_head && c.value("style", "") != "wrapper")
        add({"--heads", std::to_string(c["heads"].get<int>())});
    if (command[0] == "multihead" && !has_config) add({causal ? "--causal" : "--no-causal"});
    if (command[0] == "cross" && causal) add({"--causal", "--causal-align", "top-left"});
    if (c.contains("layer")) add({"--layer", std::to_string(c["layer"].get<int>())});
    if (c.contains("token_ids")) add({"--token-ids", listed(c["token_ids"])});
    // BERT's norm belongs to its embedding; the others default to theirs with token ids.
    if (!c.contains("token_ids") && c["norm"] == true) add({"--pre-norm"});
    if (c.contains("context")) {
        write_text("context.json", c["context"].dump());
        add({"--context", "context.json"});
    }
    return command;
}

void check_near(const json& computed, const json& expected, double tolerance) {
    const std::vector<double> a = flat(computed), b = flat(expected);
    REQUIRE(a.size() == b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    CHECK(worst <= tolerance);
}

json run_json(std::vector<std::string> command, const std::string& input = "") {
    const Outcome outcome = run_attn(command, input);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("models: every family, by the names in its file, gives the independent answer") {
    scratch_folder();
    const json all = load_data("models/expected.json")["cases"];
    CHECK(all.size() >= 20);
    for (const json& one : all) {
        const json c = completed(one, all);
        CAPTURE(c["id"].get<std::string>());
        for (const bool causal : {false, true}) {
            const bool both = c["causal"] == "both";
            if (!both && c["causal"] != causal) continue;
            // float32 rounds each step; numbers here are of the order of 1.
            for (const auto& [dtype, tolerance] :
                 {std::pair("float64", 1e-12), {"float32", 1e-5}}) {
                std::vector<std::string> command = command_for(c, causal);
                command.insert(command.end(), {"--dtype", dtype});
                const json result =
                    run_json(command, c.contains("hidden") ? c["hidden"].dump() : "");
                for (const char* name :
                     {"queries", "keys", "values", "attention_weights", "context_vectors"}) {
                    const std::string key = std::string(name) + (both && causal ? "_causal" : "");
                    if (c.contains(key)) check_near(result[name], c[key], tolerance);
                }
            }
        }
    }
}

TEST_CASE("models: config echoes the family, the layer and the shapes, and is a request") {
    scratch_folder();
    const json result = run_json({"multihead", "--weights", data_path("models/gpt2"), "--layer",
                                  "1", "--example", "sentence", "--embed-dim", "12"});
    const json& config = result["config"];
    CHECK(config["family"] == "gpt2");
    CHECK(config["layer"] == 1);
    CHECK(config["heads"] == 3);
    CHECK(config["weights_layout"] == "in-out");
    CHECK(config["weights_shapes"]["h.1.attn.c_attn.weight"] == json({12, 36}));
    CHECK_FALSE(config.contains("init"));
    write_text("config.json", config.dump());
    CHECK(run_json({"multihead", "config.json"})["context_vectors"] == result["context_vectors"]);
    json other = config;
    other["weights_shapes"]["h.1.attn.c_attn.weight"] = {12, 48};
    CHECK(run_attn({"multihead"}, other.dump()).code == 3);
}

TEST_CASE("models: flags that contradict the file are refused") {
    scratch_folder();
    const std::string gpt2 = data_path("models/gpt2"),
                      mha = data_path("models/mha/packed.safetensors");
    const auto error_line = [](const std::vector<std::string>& command,
                               const std::string& input = "") {
        const Outcome outcome = run_attn(command, input);
        CHECK(outcome.out == "");
        CHECK(outcome.code != 0);
        return outcome.err;
    };
    const auto names = [](const std::string& text, const std::string& part) {
        CAPTURE(text);
        CHECK(text.find(part) != std::string::npos);
    };
    names(error_line({"multihead", "--weights", gpt2, "--layer", "7", "--token-ids", "1"}),
          "it has layers 0 to 1");
    names(error_line({"multihead", "--weights", gpt2, "--token-ids", "11"}),
          "token id 11, but " + gpt2 + "/model.safetensors:wte.weight has 11 rows");
    names(error_line({"multihead", "--weights", gpt2, "--layer", "1", "--token-ids", "1"}),
          "layer 1 takes hidden states");
    names(error_line({"self", "--weights", gpt2, "--token-ids", "1"}), "expected attn multihead");
    names(error_line({"multihead", "--weights", gpt2, "--d-out", "6", "--token-ids", "1"}),
          "--d-out 6: the weights have 12");
    names(error_line({"multihead", "--weights", gpt2, "--seed", "1", "--init", "rand",
                      "--token-ids", "1"}),
          "none is drawn");
    names(error_line({"multihead", "--weights", gpt2, "--example", "journey"}),
          "3 columns; expected 12 as the query weight takes");
    names(error_line({"multihead", "--weights", mha, "--heads", "3"}, "[[1,2,3,4,5,6,7,8]]"),
          "--heads 3: the query weight's 8 outputs are not a multiple of 3");
    names(error_line({"multihead", "--weights", mha, "--family", "gpt2"}, "[[1]]"),
          "it has in_proj_bias (24), in_proj_weight (24, 8)");
    names(error_line({"multihead", "--weights", data_path("arrays/single.npz")}, "[[1]]"),
          "expected names as in gpt2: h.0.attn.c_attn.weight");
    names(error_line({"self", "--layer", "1"}, "[[1]]"), "requires --weights");
    write_text("more.json", R"({"layers.0.self_attn.q_proj.weight": [[1]],
        "layers.0.self_attn.k_proj.weight": [[1]], "layers.0.self_attn.v_proj.weight": [[1]],
        "layers.0.self_attn.o_proj.weight": [[1]], "layers.0.self_attn.q_norm.weight": [1]})");
    names(error_line({"multihead", "--weights", "more.json"}, "[[1]]"),
          "a norm of queries or keys, \"layers.0.self_attn.q_norm.weight\", which is not supported "
          "yet");
    write_text("config.json", R"({"model_type": "gemma2"})");
    write_text("plain.json", R"({"layers.0.self_attn.q_proj.weight": [[1]],
        "layers.0.self_attn.k_proj.weight": [[1]], "layers.0.self_attn.v_proj.weight": [[1]],
        "layers.0.self_attn.o_proj.weight": [[1]]})");
    names(error_line({"multihead", "--weights", "plain.json"}, "[[1]]"),
          "model type gemma2 is not supported; supported: gpt2, llama, mistral, qwen2");
    std::remove("config.json");
}

TEST_CASE(
    "models: settings that neither tensors nor a config determine are required, not guessed") {
    scratch_folder();
    const auto refuses = [](const std::vector<std::string>& command, const std::string& part) {
        const Outcome outcome = run_attn(command, "[[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]]");
        CAPTURE(outcome.err);
        CHECK(outcome.code == 2);
        CHECK(outcome.err.find(part) != std::string::npos);
    };
    for (const char* family : {"gpt2", "bert", "llama", "neox"})
        refuses({"multihead", "-", "--weights", data_path(std::string("models/") + family),
                 "--model-config", "none"},
                "--heads: is missing");
    refuses({"multihead", "-", "--weights", data_path("models/mha/packed.safetensors")},
            "--heads: is missing");
    refuses({"multihead", "-", "--weights", data_path("models/neox"), "--model-config", "none",
             "--heads", "2"},
            "--rope-base and --rope-dims");
}

TEST_CASE("models: a flag overrules its own setting of the model's config and no other") {
    scratch_folder();
    const std::string input = "[[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]]";
    const auto config = [&](const std::string& model, std::vector<std::string> flags) {
        flags.insert(flags.begin(), {"multihead", "-", "--weights", data_path("models/" + model)});
        return run_json(flags, input)["config"];
    };
    CHECK(config("mistral", {"--rope", "half"})["rope_base"] == 1e6);
    CHECK(config("neox", {"--rope", "half"})["rope_dims"] == 4);
    CHECK(config("neox", {"--rope-dims", "2"})["rope_base"] == 1e4);
    CHECK(config("mistral", {})["window"] == json({2, -1}));
    CHECK_FALSE(config("qwen2", {}).contains("window"));
}

TEST_CASE("models: the epsilon of a norm is the config's, a flag's, and refused without a norm") {
    scratch_folder();
    const std::string hidden = data_path("models/hidden.csv"), gpt2 = data_path("models/gpt2");
    const std::vector<std::string> plain{"multihead", hidden,    "--weights",  gpt2,
                                         "--layer",   "1",       "--pre-norm", "--emit",
                                         "all",       "--dtype", "float64"};
    std::vector<std::string> wide = plain, without = plain;
    wide.insert(wide.end(), {"--norm-eps", "3"});
    const json narrow_result = run_json(plain), wide_result = run_json(wide);
    CHECK(narrow_result["config"]["norm_eps"] == 1e-5);
    CHECK(wide_result["config"]["norm_eps"] == 3.0);
    CHECK(wide_result["inputs"] == narrow_result["inputs"]);
    CHECK(wide_result["normed_inputs"] != narrow_result["normed_inputs"]);
    without.erase(std::find(without.begin(), without.end(), "--pre-norm"));
    without.insert(without.end(), {"--norm-eps", "3"});
    const Outcome refused = run_attn(without);
    CHECK(refused.code == 2);
    CHECK(refused.err.find("requires --pre-norm or --token-ids") != std::string::npos);
}

TEST_CASE("models: settings of config.json that are not understood are refused") {
    scratch_folder();
    json llama = json::parse(read_text(data_path("models/llama/config.json")));
    const auto refusal = [&](const json& changes) {
        json changed = llama;
        changed.update(changes);
        write_text("changed.json", changed.dump());
        const Outcome outcome = run_attn({"multihead", "-", "--weights", data_path("models/llama"),
                                          "--model-config", "changed.json"},
                                         "[[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]]");
        CAPTURE(changes.dump());
        CHECK(outcome.code == (changes.empty() ? 0 : 3));
        CHECK(outcome.out.empty() != changes.empty());
        return outcome.code == 0 ? std::string() : outcome.err;
    };
    CHECK(refusal(json::object()) == "");
    llama["rope_scaling"] = {{"rope_type", "llama3"},
                             {"factor", 8.0},
                             {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0},
                             {"original_max_position_embeddings", 8192}};
    CHECK(refusal(json::object()) == "");
    CHECK(run_json({"multihead", "-", "--weights", data_path("models/llama"), "--model-config",
                    "changed.json"},
                   "[[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]]")["config"]["rope_scaling"] ==
          json({8.0, 1.0, 4.0, 8192.0}));
    llama.erase("rope_scaling");
    CHECK(refusal({{"head_dim", 4.5}}) ==
          "attn: error: changed.json: head_dim is 4.5; expected an integer from 1 to "
          "2147483648, or --model-config none and every setting as a flag\n");
    for (const json& rope : {json{{"rope_scaling", {{"type", "yarn"}, {"factor", 2}}}},
                             json{{"rope_scaling", {{"type", "llama3"}, {"factor", 2}}}},
                             json{{"rope_scaling", {{"factor", 2}}}}, json{{"rope_scaling", 4}},
                             json{{"rope_parameters", {{"type", "linear"}}}}})
        CHECK(refusal(rope).find("rope_") != std::string::npos);
    CHECK(refusal({{"sliding_window", 2}, {"layer_types", {"odd", "odd"}}}).find("layer_types") !=
          std::string::npos);
    CHECK(refusal({{"head_dim", "x"}}).find("head_dim") != std::string::npos);
    CHECK(refusal({{"num_attention_heads", 4.5}}).find("num_attention_heads 4.5") !=
          std::string::npos);
}

TEST_CASE("models: two styles of the notebooks' names in one layer are refused") {
    scratch_folder();
    const std::string bare = R"("W_query": [[1]], "W_key": [[1]], "W_value": [[1]])";
    const std::string linear =
        R"("W_query.weight": [[1]], "W_key.weight": [[1]], "W_value.weight": [[1]])";
    for (const std::string& mixed :
         {bare + R"(, "out_proj.weight": [[5]])", bare + R"(, "W_query.bias": [1])",
          linear + R"(, "b_query": [1])", linear + R"(, "W_out": [[2]])",
          linear + R"(, "out_proj.bias": [2])", bare + R"(, "W_querry": [[2]])"}) {
        CAPTURE(mixed);
        CHECK(
            run_attn({"multihead"}, R"({"inputs": [[1]], "heads": 1, "weights": {)" + mixed + "}}")
                .code == 3);
    }
    CHECK(run_attn({"multihead"}, R"({"inputs": [[1]], "weights": {)" + bare + "}}").code == 0);
}

TEST_CASE("save-weights: a file of attn records its settings, and converts") {
    scratch_folder();
    const std::vector<std::string> drawn{"multihead", "--text",  "a b c d", "--embed-dim",
                                         "8",         "--heads", "2",       "--no-causal",
                                         "--softcap", "3",       "--seed",  "3"};
    for (const std::string family : {"llama", "bert", "notebook"}) {
        std::vector<std::string> save = drawn;
        save.insert(save.end(), {"--save-weights", "w.safetensors", "--save-family", family});
        const json first = run_json(save)["context_vectors"];
        const std::vector<std::string> input{"multihead", "--text", "a b c d", "--embed-dim", "8"};
        std::vector<std::string> load = input;
        load.insert(load.end(), {"--weights", "w.safetensors"});
        std::vector<std::string> convert = load;
        CHECK(run_json(load)["context_vectors"] == first);
        convert.insert(convert.end(), {"--save-weights", "v.npz", "--save-family", "mha"});
        CHECK(run_json(convert)["context_vectors"] == first);
        load.back() = "v.npz";
        CHECK(run_json(load)["config"]["family"] == "mha");
        CHECK(run_json(load)["context_vectors"] == first);
    }
    CHECK(run_attn({"self", "-", "--save-family", "mha"}, "[[1]]").code == 2);
    CHECK(run_attn({"self", "-", "-o", "one.npz", "--save-weights", "./one.npz"}, "[[1]]").code ==
          2);
}

TEST_CASE("save-weights: in every family's names the parameters come back to the bit") {
    scratch_folder();
    const std::vector<std::string> drawn{"multihead", "--text",     "a b c d", "--embed-dim",
                                         "8",         "--heads",    "2",       "--seed",
                                         "3",         "--qkv-bias", "--emit",  "context_vectors"};
    for (const std::string init : {"linear", "rand", "mha", "xavier"})
        for (const std::string family : {"notebook", "gpt2", "llama", "bert", "neox", "mha"})
            for (const std::string suffix : {"safetensors", "npz", "json"}) {
                CAPTURE(init + " " + family + " " + suffix);
                const std::string file = "saved." + suffix;
                std::vector<std::string> save = drawn, load = drawn;
                save.insert(save.end(),
                            {"--init", init, "--family", family, "--save-weights", file});
                load.insert(load.end(), {"--weights", file, "--causal"});
                load.erase(std::find(load.begin(), load.end(), "--qkv-bias"));
                // These families turn queries and keys, which drawn layers do not.
                if (family == "llama" || family == "neox")
                    for (auto* command : {&save, &load})
                        command->insert(command->end(), {"--rope", "half"});
                const json first = run_json(save)["context_vectors"];
                CHECK(run_json(load)["context_vectors"] == first);
            }
}

TEST_CASE("save-weights: independent heads, one head and golden files come back too") {
    scratch_folder();
    const std::vector<std::string> wrapper{"multihead", "--example", "journey", "--d-out", "2",
                                           "--heads",   "2",         "--style", "wrapper"};
    std::vector<std::string> save = wrapper;
    save.insert(save.end(), {"--save-weights", "heads.safetensors"});
    const json first = run_json(save)["context_vectors"];
    CHECK(run_json({"multihead", "--example", "journey", "--weights",
                    "heads.safetensors"})["context_vectors"] == first);
    for (const std::string init : {"linear", "rand"})
        for (const std::string suffix : {"safetensors", "npz", "json"}) {
            const std::string file = "golden." + suffix;
            const Outcome outcome = run_attn({"self", "--example", "journey", "--d-out", "3",
                                              "--init", init, "--emit", "all", "-o", file});
            CHECK(outcome.err == "");
            CHECK(run_json({"self", file + ":inputs", "--weights", file})["context_vectors"] ==
                  run_json({"self", "--example", "journey", "--d-out", "3", "--init",
                            init})["context_vectors"]);
        }
}
