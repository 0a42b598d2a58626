// The smallest models; see small_models.hpp.
#include "tests/support/small_models.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/support.hpp"

namespace attn::test::small_models {

json numbers(const std::vector<int>& shape, int seed, std::size_t axis) {
    if (axis == shape.size()) return std::round(std::sin(12.9898 * seed) * 1000) / 1000;
    json list = json::array();
    for (int i = 0; i < shape[axis]; ++i)
        list.push_back(numbers(shape, seed * 7 + i + 1, axis + 1));
    return list;
}

std::vector<Model> models() {
    const std::vector<int> three{3 * width, width}, threes{3 * width};
    const json two_heads{{"heads", 2}};
    const json looks_back{{"heads", 2}, {"causal", true}, {"scale", 0.5}, {"rope", "none"}};
    const json looks_around{{"heads", 2}, {"causal", false}, {"scale", 0.5}, {"rope", "none"}};
    const json rotates{{"heads", 2},     {"causal", true},     {"scale", 0.5},
                       {"rope", "half"}, {"rope_base", 10000}, {"rope_dims", 2}};
    std::vector<Model> all{{"gpt2",
                            "h.0.attn.",
                            "h.0.ln_1.",
                            "wte.",
                            looks_back,
                            {"bias", "masked_bias"},
                            {{"h.0.attn.c_attn.weight", {width, 3 * width}},
                             {"h.0.attn.c_attn.bias", threes},
                             {"h.0.attn.c_proj.weight", square},
                             {"h.0.attn.c_proj.bias", row},
                             {"h.0.ln_1.weight", row},
                             {"h.0.ln_1.bias", row},
                             {"wte.weight", {5, width}},
                             {"wpe.weight", {5, width}}}},
                           {"llama",
                            "model.layers.0.self_attn.",
                            "model.layers.0.input_layernorm.",
                            "model.embed_tokens.",
                            rotates,
                            {"rotary_emb.inv_freq"},
                            {{"model.layers.0.self_attn.q_proj.weight", square},
                             {"model.layers.0.self_attn.k_proj.weight", square},
                             {"model.layers.0.self_attn.v_proj.weight", square},
                             {"model.layers.0.self_attn.o_proj.weight", square},
                             {"model.layers.0.input_layernorm.weight", row},
                             {"model.embed_tokens.weight", {5, width}}}},
                           {"bert",
                            "encoder.layer.0.attention.",
                            "",
                            "embeddings.",
                            looks_around,
                            {},
                            {{"encoder.layer.0.attention.self.query.weight", square},
                             {"encoder.layer.0.attention.self.key.weight", square},
                             {"encoder.layer.0.attention.self.value.weight", square},
                             {"encoder.layer.0.attention.output.dense.weight", square},
                             {"embeddings.word_embeddings.weight", {5, width}},
                             {"embeddings.position_embeddings.weight", {5, width}},
                             {"embeddings.token_type_embeddings.weight", {2, width}},
                             {"embeddings.LayerNorm.weight", row},
                             {"embeddings.LayerNorm.bias", row}}},
                           {"neox",
                            "gpt_neox.layers.0.attention.",
                            "gpt_neox.layers.0.input_layernorm.",
                            "gpt_neox.embed_in.",
                            rotates,
                            {"bias", "masked_bias", "rotary_emb.inv_freq"},
                            {{"gpt_neox.layers.0.attention.query_key_value.weight", three},
                             {"gpt_neox.layers.0.attention.dense.weight", square},
                             {"gpt_neox.layers.0.input_layernorm.weight", row},
                             {"gpt_neox.layers.0.input_layernorm.bias", row},
                             {"gpt_neox.embed_in.weight", {5, width}}}}};
    for (const std::string module : {"", "blocks.0.att."}) {
        const auto add = [&](const std::string& name, const json& settings,
                             const std::vector<std::string>& harmless,
                             const std::map<std::string, std::vector<int>>& tensors) {
            Model model{name + " " + module, module, "", "", settings, harmless, {}};
            for (const auto& [tensor, shape] : tensors) model.tensors[module + tensor] = shape;
            all.push_back(model);
        };
        add("mha joined", two_heads, {}, {{"in_proj_weight", three}, {"out_proj.weight", square}});
        add("mha apart", two_heads, {},
            {{"q_proj_weight", square},
             {"k_proj_weight", square},
             {"v_proj_weight", square},
             {"out_proj.weight", square}});
        add("notebook", two_heads, {"mask"},
            {{"W_query.weight", square},
             {"W_key.weight", square},
             {"W_value.weight", square},
             {"out_proj.weight", square}});
        add("notebook bare", json::object(), {"mask"},
            {{"W_query", square}, {"W_key", square}, {"W_value", square}});
        for (const std::string dot : {".weight", ""}) {
            std::map<std::string, std::vector<int>> heads;
            for (const std::string head : {"heads.0.", "heads.1."})
                for (const std::string part : {"W_query", "W_key", "W_value"})
                    heads[head + part + dot] = square;
            add("wrapper" + dot, json::object(), {"mask", "heads.0.mask", "heads.1.mask"}, heads);
            heads[dot.empty() ? "W_out" : "out_proj.weight"] =
                dot.empty() ? std::vector<int>{2 * width, 3} : std::vector<int>{3, 2 * width};
            add("wrapper with output" + dot, json::object(),
                {"mask", "heads.0.mask", "heads.1.mask"}, heads);
        }
    }
    return all;
}

json weights_of(const Model& model) {
    json weights = json::object();
    int seed = 1;
    for (const auto& [name, shape] : model.tensors) weights[name] = numbers(shape, ++seed);
    return weights;
}

json form_of(const std::string& name) {
    if (name.ends_with("inv_freq")) return {1.0};
    if (name.ends_with("masked_bias")) return {-1e9};
    // torch.tril of the models, torch.triu of the notebooks.
    if (name.ends_with("bias")) return json::parse("[[1,0,0],[1,1,0],[1,1,1]]");
    return json::parse("[[0,1,1],[0,0,1],[0,0,0]]");
}

Outcome run_model(const Model& model, const json& weights, const std::string& input,
                  const std::vector<std::string>& more) {
    write_text("w.json", weights.dump());
    std::vector<std::string> command{"multihead", "--weights", "w.json", "--emit",
                                     "context_vectors"};
    if (!input.empty()) command.insert(command.begin() + 1, "-");
    for (const auto& [key, value] : model.settings.items()) {
        std::string name = key;
        std::replace(name.begin(), name.end(), '_', '-');
        command.push_back((value == json(false) ? "--no-" : "--") + name);
        if (!value.is_boolean())
            command.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    command.insert(command.end(), more.begin(), more.end());
    return run_attn(command, input);
}

}  // namespace attn::test::small_models
