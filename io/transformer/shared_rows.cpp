#include "io/transformer/shared_rows.hpp"

#include <algorithm>
#include <cmath>

namespace attn::io {

bool has_experts_after_dense(const BlockReader& reader) {
    return reader.layer >= reader.config.whole("first_k_dense_replace", 0);
}

bool has_experts_by_type(const BlockReader& reader) {
    return has_experts_from(reader, reader.config.whole("first_k_dense_replace", 1));
}

bool has_experts_from(const BlockReader& reader, std::size_t first) {
    if (!reader.config.gives("mlp_layer_types")) return reader.layer >= first;
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
    pass_keys(reader.config, {"n_group", "topk_group"});
    if (auto* const experts = std::get_if<Experts>(&block.ffn)) read_groups(reader, *experts, 1, 2);
}

void read_groups(const BlockReader& reader, Experts& part, std::size_t chosen, std::size_t least) {
    const ModelConfig& config = reader.config;
    part.groups = config.whole("n_group", 1);
    part.chosen_groups = config.whole("topk_group", chosen == 0 ? part.groups : chosen);
    const std::size_t each = part.groups == 0 ? 0 : part.count / part.groups;
    if (each < least || part.count % part.groups != 0)
        config.fail("n_group", "a divisor of the number of experts " + std::to_string(part.count) +
                                   " that leaves at least " + std::to_string(least) +
                                   " in each group");
    if (part.chosen_groups == 0 || part.chosen_groups > part.groups ||
        part.chosen_groups * each < part.chosen)
        config.fail("topk_group", "1 to n_group, with at least num_experts_per_tok experts");
}

std::function<double(double)> position_factor(const BlockReader& reader,
                                              const nlohmann::json& rope) {
    const auto number = [&](const char* key) {
        if (!rope.contains(key) || !rope[key].is_number() || !(rope[key].get<double>() > 0))
            reader.config.fail("rope_parameters",
                               std::string("a number ") + key + " above 0 in it");
        return rope[key].get<double>();
    };
    const double beta = number("llama_4_scaling_beta"),
                 length = number("original_max_position_embeddings");
    return [beta, length](double position) {
        return 1 + beta * std::log1p(std::floor(position / length));
    };
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
