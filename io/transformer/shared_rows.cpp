#include "io/transformer/shared_rows.hpp"

#include <algorithm>

namespace attn::io {

bool has_experts_after_dense(const BlockReader& reader) {
    return reader.layer >= reader.config.whole("first_k_dense_replace", 0);
}

bool has_experts_by_type(const BlockReader& reader) {
    const std::size_t dense = reader.config.whole("first_k_dense_replace", 1);
    if (!reader.config.gives("mlp_layer_types")) return reader.layer >= dense;
    const nlohmann::json& type = reader.config.of_layer("mlp_layer_types", reader.layer);
    if (type != "sparse" && type != "dense")
        reader.config.fail("mlp_layer_types", "a list of \"sparse\" and \"dense\"");
    return type == "sparse";
}

bool has_experts_by_step(const BlockReader& reader) {
    const std::size_t step = reader.config.whole("decoder_sparse_step", 1);
    if (step == 0) reader.config.fail("decoder_sparse_step", "at least 1");
    const nlohmann::json& dense = reader.config.at("mlp_only_layers");
    if (!dense.is_array() && !dense.is_null()) reader.config.fail("mlp_only_layers", "a list");
    if (std::find(dense.begin(), dense.end(), reader.layer) != dense.end()) return false;
    return reader.config.whole("num_experts") > 0 && (reader.layer + 1) % step == 0;
}

void use_sigmoid_router(BlockReader& reader, TransformerBlock& block,
                        std::initializer_list<std::string_view> bias, std::string_view factor) {
    const double weight = factor.empty() ? 1 : reader.config.number(std::string(factor), 1);
    auto* const experts = std::get_if<Experts>(&block.ffn);
    if (experts == nullptr) return;
    experts->scores = Experts::Scores::sigmoid;
    experts->sum_eps = 1e-20;
    experts->factor = weight;
    for (const std::string_view name : bias)
        if (experts->choice_bias.empty())
            experts->choice_bias = elements_of(reader.tensors.find(reader.full(name)));
    if (experts->choice_bias.empty()) reader.tensors.get(reader.full(*bias.begin()));  // fails
    if (experts->choice_bias.size() != experts->count)
        reader.config.fail("num_experts", "the number of elements of the router's bias, " +
                                              std::to_string(experts->choice_bias.size()));
}

void use_grouped_router(BlockReader& reader, TransformerBlock& block) {
    use_sigmoid_router(reader, block,
                       {"mlp.gate.e_score_correction_bias", "mlp.e_score_correction_bias"},
                       "routed_scaling_factor");
    const std::size_t groups = reader.config.whole("n_group", 1),
                      chosen = reader.config.whole("topk_group", 1);
    auto* const experts = std::get_if<Experts>(&block.ffn);
    if (experts == nullptr) return;
    if (groups == 0 || experts->count % groups != 0 || experts->count / groups < 2)
        reader.config.fail("n_group", "a divisor of the number of experts " +
                                          std::to_string(experts->count) +
                                          " that leaves at least 2 in each group");
    if (chosen == 0 || chosen > groups || chosen * (experts->count / groups) < experts->chosen)
        reader.config.fail("topk_group", "1 to n_group, with at least num_experts_per_tok experts");
    experts->groups = groups;
    experts->chosen_groups = chosen;
}

void pass_keys(const ModelConfig& config, std::initializer_list<const char*> keys) {
    for (const char* key : keys) config.at(key);
}

double bound_of(const ModelConfig& config, const std::string& key) {
    if (!config.gives(key)) return config.names(key) ? 0 : config.number(key, 0);
    if (!(config.number(key) > 0)) config.fail(key, "a number above 0, or null");
    return config.number(key);
}

bool is_without_rotation(const BlockReader& reader, std::size_t layer) {
    const std::size_t every = reader.config.whole("no_rope_layer_interval", 4);
    const nlohmann::json& list = reader.config.at("no_rope_layers");
    if (!list.is_array() && !list.is_null()) reader.config.fail("no_rope_layers", "a list");
    if (list.empty()) {
        if (every == 0) reader.config.fail("no_rope_layer_interval", "at least 1");
        return (layer + 1) % every == 0;
    }
    const nlohmann::json& turns = reader.config.of_layer("no_rope_layers", layer);
    return turns == 0 || turns == false;
}

}  // namespace attn::io
