// Whole models: a small one of each family against the library that published its kind.
#include "io/transformer/family_row.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace model_families_test {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("models: a model of each family agrees with the library's float64") {
    std::size_t of_words = 0, of_images = 0;
    for (const json& c : all_model_cases()) {
        if (c.contains("generated")) continue;  // model_generation_test.cpp
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        const bool is_of_words = !c.contains("inputs");
        ++(is_of_words ? of_words : of_images);
        const Words words =
            words_of(c) + Words{"--emit", is_of_words ? "last_hidden_state,attention_weights"
                                                      : "last_hidden_state"};
        if (is_refused(c)) {
            check_error(words, "", 2, "is a state-space layer");
            continue;
        }
        const json found = result_of(words);
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
        if (is_of_words) continue;
        std::size_t numbers = 0;  // of the encoder as well
        for (const char* array : {"last_hidden_state", "encoder_last_hidden_state"})
            if (found.contains(array)) numbers += flat(found[array]).size();
        CHECK_EQ(result_of(words + Words{"--dry-run"})["output_numbers"], numbers);
    }
    CHECK_GE(of_words, 100);
    CHECK_GE(of_images, 6);
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
        const std::string ids = ids_of(c);
        CAPTURE(c["name"].get<std::string>());
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
                const bool is_named = contains(run.err, key) ||
                                      contains(run.err, "model.safetensors:") ||
                                      contains(run.err, "by the model's config.json");
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
        CAPTURE(c["name"].get<std::string>());
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
            check_error({"model", "model", "--token-ids", ids_of(c)}, "", 3, norm);
            ++changed;
        }
    }
    CHECK_GE(changed, 15);
}

TEST_CASE("models: positions and masks change the result, or are errors") {
    std::size_t refused = 0;
    for (const json& c : model_cases()) {
        if (is_refused(c)) continue;
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        const std::size_t tokens = c["token_ids"].size();
        std::string positions = "0", mask = "1";
        for (std::size_t i = 1; i < tokens; ++i) {
            positions += "," + std::to_string(2 * i + (i > 2 ? 1 : 0));
            mask += i == 2 ? ",0" : ",1";
        }
        const json expected = result_of(words_of(c));
        for (const Words& given :
             {Words{"--position-ids", positions}, Words{"--attention-mask", mask}}) {
            const Outcome run = run_attn(words_of(c) + given);
            if (run.code == 0) {
                CHECK_NE(json::parse(run.out)["last_hidden_state"], expected["last_hidden_state"]);
                continue;
            }
            CHECK_EQ(run.code, 2);
            CHECK(contains(run.err, "--position-ids"));
            ++refused;
        }
    }
    CHECK_LE(refused, 10);
    CHECK_GE(refused, 3);
}

TEST_CASE("models: hidden states of a layer go on from there, as do the layers before --layer") {
    for (const char* model : {"gpt2", "mistral"}) {
        const std::string path = data_path(std::string("models/") + model);
        const Words ids{"--token-ids", "3,1,4", "--dtype", "float64"};
        const json found = result_of(Words{"model", path} + ids);
        const std::size_t last = found["layer_numbers"].size() - 1;
        write_text("states.json", found["hidden_states"][last].dump());
        const json rest = result_of({"model", path, "--hidden-states", "states.json", "--layers",
                                     "-1", "--dtype", "float64"});
        CHECK_EQ(rest["layer_numbers"], json({last}));
        for (const char* array : {"attention_weights", "hidden_states"})
            CHECK_LE(difference_of(rest[array].back(), found[array].back()), 1e-14);
        const json layer = result_of(Words{"multihead", "--weights", path, "--layer",
                                           std::to_string(last), "--emit", "inputs"} +
                                     ids);
        CHECK_LE(difference_of(layer["inputs"], found["hidden_states"][last]), 1e-14);
    }
}

TEST_CASE("models: the row of every type can be read, and is that type's") {
    const std::vector<std::string_view> types = attn::io::family_types();
    CHECK(types.size() > 170);
    for (const std::string_view type : types) CHECK(attn::io::find_family_row(type)->type == type);
    CHECK(attn::io::find_family_row("llama layer-norm") == nullptr);  // only a base for others
}

}  // namespace model_families_test
