// Whole models: a small one of each family against the library that published its kind.
#include <doctest/doctest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/support/drawn_model.hpp"
#include "tests/support/model_cases.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace model_families_test {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("models: a model of each family agrees with the library's float64") {
    const std::vector<json> cases = model_cases();
    REQUIRE_GE(cases.size(), 100);
    for (const json& c : cases) {
        const std::string name = c["name"], folder = "model";
        CAPTURE(name);
        write_model(c, folder);
        const Outcome run = run_attn({"model", folder, "--token-ids", ids_of(c), "--dtype",
                                      "float64", "--emit", "last_hidden_state,attention_weights"});
        if (is_refused(c)) {
            CHECK_EQ(run.code, 2);
            CHECK_NE(run.err.find("is a state-space layer"), std::string::npos);
            continue;
        }
        REQUIRE_MESSAGE(run.code == 0, run.err);
        const json found = json::parse(run.out);
        for (const auto& entry : c["expected"].items()) {
            const std::string& array = entry.key();
            const json& expected = entry.value();
            CAPTURE(array);
            const std::size_t dot = array.find('.');
            const json& own = dot == std::string::npos
                                  ? found[array]
                                  : found[array.substr(0, dot)][std::stoul(array.substr(dot + 1))];
            CHECK_LE(difference_of(own, expected), 1e-8);
        }
    }
}

/// Keys whose sizes tensors have in all families. Others have an effect of their own in some, or
/// none: fewer layers, more heads of half the width, positions without a table.
constexpr const char* size_keys[] = {"vocab_size", "hidden_size",       "n_embd",
                                     "d_model",    "intermediate_size", "moe_intermediate_size",
                                     "ffn_dim",    "embedding_size"};

/// A config of experts alone has no layer of this width.
bool has_layer_of(const json& config, const std::string& key) {
    if (key == "intermediate_size" && config["model_type"] == "granitemoehybrid") return false;
    if (key != "intermediate_size" || !config.contains("moe_intermediate_size")) return true;
    const json dense = config.value("first_k_dense_replace", json());
    return dense.is_number() && dense > 0;
}

TEST_CASE("models: sizes that contradict the tensors are errors that name the key") {
    std::size_t changed = 0;
    for (const json& c : model_cases()) {
        const std::string name = c["name"], ids = ids_of(c);
        CAPTURE(name);
        write_model(c, "model");
        for (const std::string key : size_keys) {
            if (!c["config"].contains(key) || !c["config"][key].is_number()) continue;
            if (!has_layer_of(c["config"], key) || is_refused(c)) continue;
            const auto size = c["config"][key].get<std::size_t>();
            for (const std::size_t other : {2 * size, size / 2}) {
                json config = c["config"];
                config[key] = other;
                CAPTURE(key);
                CAPTURE(other);
                write_text("model/config.json", config.dump());
                const Outcome run = run_attn({"model", "model", "--token-ids", ids});
                CHECK_EQ(run.code, 3);
                CHECK(run.out.empty());
                const bool is_named =
                    run.err.find(key) != std::string::npos ||
                    run.err.find("model.safetensors:") != std::string::npos ||
                    run.err.find("by the model's config.json") != std::string::npos;
                CHECK_MESSAGE(is_named, run.err);
                ++changed;
            }
        }
    }
    CHECK_GE(changed, 500);
}

TEST_CASE("models: a norm of each head and a norm over all heads are not interchangeable") {
    std::size_t changed = 0;
    for (json c : model_cases()) {
        const std::string name = c["name"];
        CAPTURE(name);
        if (is_refused(c) || !c["config"].contains("num_attention_heads")) continue;
        const auto heads = c["config"]["num_attention_heads"].get<std::size_t>();
        for (const std::string norm : {"q_norm.weight", "q_layernorm.weight"}) {
            json tensors = c["tensors"];
            bool is_changed = false;
            for (auto& [tensor, row] : tensors.items()) {
                if (!tensor.ends_with("self_attn." + norm) || row[0].size() != 1) continue;
                const auto length = row[0][0].get<std::size_t>();
                const bool is_whole = length == c["config"].value("hidden_size", std::size_t{0});
                row[0][0] = is_whole ? length / heads : length * heads;
                is_changed = true;
            }
            if (!is_changed) continue;
            json other = c;
            other["tensors"] = tensors;
            write_model(other, "model");
            const Outcome run = run_attn({"model", "model", "--token-ids", ids_of(c)});
            CHECK_EQ(run.code, 3);
            CHECK_MESSAGE(run.err.find(norm) != std::string::npos, run.err);
            ++changed;
        }
    }
    CHECK_GE(changed, 15);
}

TEST_CASE("models: positions and masks change the result, or are errors") {
    std::size_t refused = 0;
    for (const json& c : model_cases()) {
        if (is_refused(c)) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        const std::size_t tokens = c["token_ids"].size();
        std::string positions = "0", mask = "1";
        for (std::size_t i = 1; i < tokens; ++i) {
            positions += "," + std::to_string(2 * i + (i > 2 ? 1 : 0));
            mask += i == 2 ? ",0" : ",1";
        }
        const std::vector<std::string> words{"model",   "model",   "--token-ids",
                                             ids_of(c), "--dtype", "float64"};
        const Outcome plain = run_attn(words);
        REQUIRE_MESSAGE(plain.code == 0, plain.err);
        const json expected = json::parse(plain.out);
        for (const auto& given : {std::pair<std::string, std::string>{"--position-ids", positions},
                                  {"--attention-mask", mask}}) {
            std::vector<std::string> more = words;
            more.push_back(given.first);
            more.push_back(given.second);
            const Outcome run = run_attn(more);
            if (run.code == 0) {
                CHECK_NE(json::parse(run.out)["last_hidden_state"], expected["last_hidden_state"]);
                continue;
            }
            CHECK_EQ(run.code, 2);
            CHECK_NE(run.err.find("--position-ids"), std::string::npos);
            ++refused;
        }
    }
    CHECK_LE(refused, 10);
    CHECK_GE(refused, 3);
}

TEST_CASE("models: float32 agrees with float64 to float32's error") {
    for (const json& c : model_cases()) {
        const std::string name = c["name"];
        if (name != "gpt2" && name != "llama" && name != "bert" && name != "qwen3") continue;
        CAPTURE(name);
        write_model(c, "model");
        for (const char* kernel : {"auto", "reference", "generic"}) {
            const Outcome run = run_attn({"model", "model", "--token-ids", ids_of(c), "--kernel",
                                          kernel, "--emit", "last_hidden_state"});
            REQUIRE_MESSAGE(run.code == 0, run.err);
            CHECK_LE(difference_of(json::parse(run.out)["last_hidden_state"],
                                   c["expected"]["last_hidden_state"]),
                     1e-5);
        }
    }
}

TEST_CASE("models: the layers and arrays that are asked for, in every format") {
    const std::string path = data_path("models/gpt2");
    const Outcome all = run_attn({"model", path, "--token-ids", "3,1,4", "--emit", "all"});
    REQUIRE_MESSAGE(all.code == 0, all.err);
    const json whole = json::parse(all.out);
    CHECK_EQ(whole["layer_numbers"], json({0, 1}));
    CHECK_EQ(whole["hidden_states"].size(), 3);
    CHECK_EQ(whole["attention_weights"].size(), 2);
    const Outcome last =
        run_attn({"model", path, "--token-ids", "3,1,4", "--layers", "-1", "--head", "1"});
    REQUIRE_MESSAGE(last.code == 0, last.err);
    const json one = json::parse(last.out);
    CHECK_EQ(one["layer_numbers"], json({1}));
    CHECK_EQ(one["attention_weights"][0][0], whole["attention_weights"][1][1]);
    CHECK_EQ(one["hidden_states"][1], whole["hidden_states"][2]);
    CHECK_EQ(one["last_hidden_state"], whole["last_hidden_state"]);
    REQUIRE_EQ(run_attn({"model", path, "--token-ids", "3,1,4", "-o", "out.npz"}).code, 0);
    const Outcome listed = run_attn({"inspect", "out.npz", "--format", "json"});
    for (const char* name : {"hidden_states.2", "attention_weights.0", "last_hidden_state"})
        CHECK_NE(listed.out.find('"' + std::string(name) + '"'), std::string::npos);
}

TEST_CASE("models: hidden states of a layer go on from there, as do the layers before --layer") {
    for (const char* model : {"gpt2", "mistral"}) {
        const std::string path = data_path(std::string("models/") + model);
        const Outcome whole = run_attn({"model", path, "--token-ids", "3,1,4", "--dtype", "float64",
                                        "--emit", "hidden_states,last_hidden_state"});
        REQUIRE_MESSAGE(whole.code == 0, whole.err);
        const json found = json::parse(whole.out);
        const std::size_t last = found["layer_numbers"].size() - 1;
        write_text("states.json", found["hidden_states"][last].dump());
        const Outcome rest =
            run_attn({"model", path, "--hidden-states", "states.json", "--layers",
                      std::to_string(last), "--dtype", "float64", "--emit", "last_hidden_state"});
        REQUIRE_MESSAGE(rest.code == 0, rest.err);
        CHECK_LE(
            difference_of(json::parse(rest.out)["last_hidden_state"], found["last_hidden_state"]),
            1e-14);
        const Outcome layer =
            run_attn({"multihead", "--weights", path, "--layer", std::to_string(last),
                      "--token-ids", "3,1,4", "--dtype", "float64", "--emit", "inputs"});
        REQUIRE_MESSAGE(layer.code == 0, layer.err);
        CHECK_LE(difference_of(json::parse(layer.out)["inputs"], found["hidden_states"][last]),
                 1e-14);
    }
}

TEST_CASE("models: any number of threads gives the same bytes") {
    const std::string path = data_path("models/qwen2");
    const auto bytes = [&](const char* threads) {
        return run_attn({"model", path, "--token-ids", "3,1,4", "--threads", threads}).out;
    };
    CHECK_EQ(bytes("1"), bytes("3"));
}

}  // namespace model_families_test
