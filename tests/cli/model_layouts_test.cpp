// Layers of models by `multihead`, and whole models without a config.json.
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace model_layouts_test {
namespace {

using namespace attn::test;
using nlohmann::json;

std::vector<StoredTensor> tensors_of(const json& c) {
    std::vector<StoredTensor> tensors;
    for (const auto& [name, row] : c["tensors"].items())
        tensors.push_back({name, "F32", row[0], drawn(name, count_of(row[0]), row[1], row[2])});
    return tensors;
}

/// The rows of a matrix in another order: row i is the given one.
template <class Source>
void reorder_rows(StoredTensor& tensor, const Source& source) {
    const std::size_t rows = tensor.shape[0], row = tensor.bytes.size() / rows;
    std::string data;
    for (std::size_t i = 0; i < rows; ++i) data += tensor.bytes.substr(source(i) * row, row);
    tensor.bytes = data;
}

void transpose(StoredTensor& tensor) {
    std::string data;
    const std::size_t rows = tensor.shape[0], columns = tensor.shape[1];
    for (std::size_t column = 0; column < columns; ++column)
        for (std::size_t row = 0; row < rows; ++row)
            data += tensor.bytes.substr((row * columns + column) * sizeof(float), sizeof(float));
    tensor.bytes = data;
    tensor.shape = {columns, rows};
}

std::string renamed(std::string name,
                    const std::vector<std::pair<std::string, std::string>>& changes) {
    for (const auto& [from, to] : changes)
        if (const std::size_t at = name.find(from); at != std::string::npos)
            name.replace(at, from.size(), to);
    return name;
}

/// q_proj, k_proj and v_proj as one in_proj_weight, and in_proj_bias.
void join_projections(std::vector<StoredTensor>& tensors) {
    std::map<std::string, StoredTensor> joined;
    for (const char* part : {".q_proj.", ".k_proj.", ".v_proj."})
        for (const StoredTensor& tensor : tensors)
            if (tensor.name.find(part) != std::string::npos) {
                const std::string name = renamed(tensor.name, {{part, ".in_proj_"}});
                StoredTensor& whole = joined.try_emplace(name, tensor).first->second;
                if (whole.name != name) {
                    whole.name = name;
                    continue;
                }
                whole.bytes += tensor.bytes;
                whole.shape[0] = whole.shape[0].get<int>() + tensor.shape[0].get<int>();
            }
    std::erase_if(tensors, [&](const StoredTensor& tensor) {
        return tensor.name.find("_proj.") != std::string::npos &&
               tensor.name.find("out_proj") == std::string::npos;
    });
    for (const auto& [name, tensor] : joined) tensors.push_back(tensor);
}

TEST_CASE("models: multihead computes a layer of a family, or names what it does not compute") {
    std::size_t computed = 0;
    std::map<std::string, bool> types;  // whether a layer of one is computed
    Sample is_taken;
    for (const json& c : model_cases()) {
        const json &expected = c["expected"], &config = c["config"];
        const std::string type = (config.contains("text_config") ? config["text_config"] : config)
                                     .value("model_type", "");
        if (is_refused(c) || !is_taken.takes()) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        for (std::size_t layer = 0; layer < 4; ++layer) {
            const std::string array = "attention_weights." + std::to_string(layer);
            if (!expected.contains(array) && layer != 0) continue;
            const Outcome run =
                run_attn({"multihead", "--weights", "model", "--layer", std::to_string(layer),
                          "--token-ids", ids_of(c), "--dtype", "float64"});
            CAPTURE(run.err);
            const bool depends = contains(run.err, "clipped") || contains(run.err, "no softmax") ||
                                 contains(run.err, "state-space");
            if (!type.empty() && !depends) types[type] |= run.code == 0;
            if (run.code == 0) {
                ++computed;
                if (!expected.contains(array)) continue;
                CHECK_LE(difference_of(json::parse(run.out)["attention_weights"], expected[array]),
                         1e-8);
                continue;
            }
            CHECK((contains(run.err, "attn model") || contains(run.err, "--rope-scaling")));
            CHECK(run.out.empty());
        }
    }
    if (one_in != 1) return;
    CHECK_GE(computed, 90);
    for (const auto& [name, is_computed] : types) {
        const std::string& type = name;  // Clang captures no structured bindings
        CAPTURE(type);
        CHECK(is_computed !=
              contains(run_attn({"help", type}).out, "multihead --weights does not compute"));
    }
    CHECK_GE(types.size(), 90);
}

TEST_CASE("models: without its config a layer with flags of another family is right, or refused") {
    // All that tensors do not show, as files of the families mean it.
    const std::vector<Words> said{{"--causal", "--rope", "half", "--rope-base", "10000", "--norm",
                                   "rms", "--norm-eps", "1e-6"},
                                  {"--causal", "--rope", "none", "--norm", "layer", "--norm-eps",
                                   "1e-5", "--position-offset", "0"},
                                  {"--no-causal", "--rope", "none", "--norm", "layer", "--norm-eps",
                                   "1e-12", "--position-offset", "0"},
                                  {"--causal", "--rope", "half", "--rope-base", "10000",
                                   "--rope-dims", "2", "--norm", "layer", "--norm-eps", "1e-5"}};
    const Words known{"gpt2",  "bert",    "roberta", "camembert", "xlm-roberta",
                      "llama", "mistral", "qwen2",   "gpt_neox"};
    std::size_t refused = 0;
    Sample is_taken(2);
    for (const json& c : model_cases()) {
        if (is_refused(c) || !is_taken.takes()) continue;
        if (std::count(known.begin(), known.end(), c["config"]["model_type"]) != 0) continue;
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        const json weights =
            result_of(words_of(c) + Words{"--emit", "attention_weights"})["attention_weights"][0];
        if (weights.is_null()) continue;
        for (const Words& flags : said) {
            const Outcome run = run_attn(
                Words{"multihead", "--weights", "model", "--model-config", "none", "--layer", "0",
                      "--dtype", "float64", "--token-ids", ids_of(c), "--embedding-scale", "1",
                      "--heads", std::to_string(weights.size()), "--scale", "0.5"} +
                flags);
            CAPTURE(flags);
            CAPTURE(run.err);
            if (run.code == 0) {
                CHECK_LE(difference_of(json::parse(run.out)["attention_weights"], weights), 1e-7);
                continue;
            }
            CHECK((run.code == 2 || run.code == 3));
            CHECK(run.out.empty());
            ++refused;
        }
    }
    CHECK_GE(refused, 20);
}

TEST_CASE("models: fairseq's RoBERTa without a config.json is the library's") {
    json c = model_case("roberta");
    c["config"]["layer_norm_eps"] = 1e-5;
    c["tensors"].erase("roberta.embeddings.token_type_embeddings.weight");
    write_model(c, "model");
    const Words asked{"--token-ids", ids_of(c), "--dtype", "float64"};
    const json expected = result_of(Words{"model", "model"} + asked);
    std::filesystem::create_directories(scratch_folder() + "/layout");
    for (const std::string prefix : {"model.encoder.", "decoder."})
        for (const std::string norm : {"emb_layer_norm", "layernorm_embedding"}) {
            std::vector<StoredTensor> tensors = tensors_of(c);
            for (StoredTensor& tensor : tensors)
                tensor.name =
                    renamed(tensor.name, {{"roberta.", prefix + "sentence_encoder."},
                                          {"embeddings.LayerNorm", norm},
                                          {"embeddings.word_embeddings", "embed_tokens"},
                                          {"embeddings.position_embeddings", "embed_positions"},
                                          {"encoder.layer.", "layers."},
                                          {"sentence_layers.", "sentence_encoder.layers."},
                                          {"attention.self.query", "self_attn.q_proj"},
                                          {"attention.self.key", "self_attn.k_proj"},
                                          {"attention.self.value", "self_attn.v_proj"},
                                          {"attention.output.dense", "self_attn.out_proj"},
                                          {"attention.output.LayerNorm", "self_attn_layer_norm"},
                                          {"intermediate.dense", "fc1"},
                                          {"output.dense", "fc2"},
                                          {"output.LayerNorm", "final_layer_norm"}});
            if (norm == "emb_layer_norm") join_projections(tensors);  // of the same releases
            write_text("layout/fairseq.safetensors", safetensors_of(tensors));
            const Words named{"--family", "roberta", "--model-config", "none"};
            for (const std::string& part : {std::string(), ":" + prefix}) {
                const Words model{"model", "layout/fairseq.safetensors" + part};
                const json found = result_of(model + named + Words{"--heads", "4"} + asked);
                for (const char* array : {"last_hidden_state", "attention_weights"})
                    CHECK_LE(difference_of(found[array], expected[array]), 1e-12);
                check_error(model + named + asked, "", 2, "--heads: missing");
            }
        }
}

TEST_CASE("models: a head is found in the dictionary that has the blocks") {
    std::size_t found = 0;
    for (json c : model_cases()) {
        if (!c["tensors"].contains("lm_head.weight") || c["config"].contains("text_config"))
            continue;
        const Words asked{"model", "nested", "--token-ids", ids_of(c), "--emit", "logits"};
        json logits;
        for (const char* prefix : {"", "state_dict.", "module."}) {
            json nested = c;
            nested["tensors"].clear();
            for (const auto& [name, row] : c["tensors"].items())
                nested["tensors"][prefix + name] = row;
            write_model(nested, "nested");
            std::vector<StoredTensor> tensors = tensors_of(c);  // drawn by their names
            for (StoredTensor& tensor : tensors) tensor.name = prefix + tensor.name;
            write_text("nested/model.safetensors", safetensors_of(tensors));
            const auto run = run_attn(asked);
            if (run.code != 0) break;  // a model that is given more than ids
            if (logits.is_null()) logits = json::parse(run.out)["logits"];
            CAPTURE(c["name"].dump());
            CHECK(json::parse(run.out)["logits"] == logits);
            ++found;
        }
    }
    CHECK_GE(found, 30);
}

TEST_CASE("models: nanoGPT and Meta's Llama without a config.json are the same models") {
    const auto asked = [](const json& c, const Words& words) {
        return words + Words{"--token-ids", ids_of(c),
                             "--dtype",     "float64",
                             "--emit",      "last_hidden_state,logits,attention_weights"};
    };
    const auto check_same = [](const Words& words, const json& expected) {
        const json found = result_of(words);
        for (const char* array : {"last_hidden_state", "logits", "attention_weights"})
            CHECK_LE(difference_of(found[array], expected[array]), 1e-12);
    };
    std::filesystem::create_directories(scratch_folder() + "/layout");
    for (json c : model_cases()) {
        const json& config = c["config"];
        std::vector<StoredTensor> tensors = tensors_of(c);
        if (c["name"] == "gpt2") {
            c["config"]["activation_function"] = "gelu";
            write_model(c, "model");
            for (StoredTensor& tensor : tensors) {
                if (tensor.shape.size() == 2 && tensor.name.find(".h.") != std::string::npos)
                    transpose(tensor);
                tensor.name = "_orig_mod." + tensor.name;
            }
            write_text("layout/model.safetensors", safetensors_of(tensors));
            const std::string heads = std::to_string(
                config.value(config.contains("n_head") ? "n_head" : "num_attention_heads", 0));
            const Words command{"model", "layout", "--family", "gpt2", "--model-config", "none"};
            check_same(asked(c, command + Words{"--heads", heads}),
                       result_of(asked(c, {"model", "model"})));
            check_error(asked(c, command), "", 2, "--heads: missing");
        }
        if (c["name"] != "llama") continue;
        write_model(c, "model");
        const auto heads = config["num_attention_heads"].get<std::size_t>();
        for (StoredTensor& tensor : tensors) {
            const bool turns = tensor.name.find("q_proj") != std::string::npos ||
                               tensor.name.find("k_proj") != std::string::npos;
            const std::size_t d =
                config.value("head_dim", config["hidden_size"].get<std::size_t>() / heads);
            if (turns)  // pairs next to each other
                reorder_rows(
                    tensor, [d](std::size_t i) { return i / d * d + i % 2 * (d / 2) + i % d / 2; });
            tensor.name = renamed(tensor.name, {{"model.", ""},
                                                {"self_attn.q_proj", "attention.wq"},
                                                {"self_attn.k_proj", "attention.wk"},
                                                {"self_attn.v_proj", "attention.wv"},
                                                {"self_attn.o_proj", "attention.wo"},
                                                {"mlp.gate_proj", "feed_forward.w1"},
                                                {"mlp.down_proj", "feed_forward.w2"},
                                                {"mlp.up_proj", "feed_forward.w3"},
                                                {"input_layernorm", "attention_norm"},
                                                {"post_attention_layernorm", "ffn_norm"},
                                                {"embed_tokens", "tok_embeddings"},
                                                {"lm_head", "output"}});
        }
        write_text("layout/model.safetensors", safetensors_of(tensors));
        const json base = config.contains("rope_parameters")
                              ? config["rope_parameters"]["rope_theta"]
                              : config.value("rope_theta", json(10000));
        const json expected = result_of(asked(c, {"model", "model"}));
        const Words meta{"model", "layout", "--family", "meta", "--model-config", "none"};
        check_same(asked(c, meta + Words{"--heads", std::to_string(heads), "--rope-base",
                                         base.dump(), "--norm-eps", config["rms_norm_eps"].dump()}),
                   expected);
        check_error(asked(c, meta), "", 2, "--heads: missing, as are --rope-base and --norm-eps");
        json params{{"n_heads", heads}, {"rope_theta", base}, {"norm_eps", config["rms_norm_eps"]}};
        write_text("layout/params.json", params.dump());
        check_same(asked(c, {"model", "layout"}), expected);
        params["qk_norm"] = true;
        write_text("layout/params.json", params.dump());
        check_error(asked(c, {"model", "layout"}), "", 3, "qk_norm is true");
        std::filesystem::remove(scratch_folder() + "/layout/params.json");
    }
}

}  // namespace
}  // namespace model_layouts_test
