// Rotary decoders with LayerNorms: Phi, StableLM, StarCoder 2, Persimmon, Nemotron, OLMo and DBRX;
// and Cohere's, in which both parts take the same normed states and neighbouring columns turn.
#include <utility>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_layer_norm {
namespace {

void adjust_phi_row(const ModelConfig& config, FamilyRow& row) {
    if (!config.flag("qk_layernorm")) return;
    row.query_norm = "self_attn.q_layernorm";
    row.key_norm = "self_attn.k_layernorm";
}

/// A norm of each head with a weight of its own.
NormSpec norm_of_heads(const BlockReader& reader, std::string_view name, std::size_t heads) {
    const std::size_t width = reader.head_width();
    std::vector<double> weights;
    for (std::size_t head = 0; head < heads; ++head) {
        const std::vector<double> own = reader.elements(
            std::string(name) + ".norms." + std::to_string(head) + ".weight", {width});
        weights.insert(weights.end(), own.begin(), own.end());
    }
    return {.weight = std::make_shared<const ComputedParameter>(
                std::move(weights), std::vector<std::size_t>{heads, width}),
            .eps = reader.config.number("layer_norm_eps"),
            .is_rms = false};
}

void adjust_stablelm_row(const ModelConfig& config, FamilyRow& row) {
    if (!config.flag("use_parallel_residual")) return;
    row.order = BlockOrder::parallel;
    row.ffn_shares_norm = true;
    row.ffn_norm = {};
}

void adjust_stablelm(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (!reader.config.flag("qk_layernorm")) return;
    part.query_norm = norm_of_heads(reader, "self_attn.q_layernorm", part.heads);
    part.key_norm = norm_of_heads(reader, "self_attn.k_layernorm", part.kv_heads);
}

/// All experts' rows are in three matrices; those of w2 are columns of the output's matrix.
FeedForward dbrx_expert(const BlockReader& reader, const Activation& activation, std::size_t inner,
                        std::size_t count, std::size_t expert) {
    const std::size_t width = reader.width();
    const auto matrix = [&](const char* name, bool in_out) {
        LinearMap map;
        map.weight = reader.tensor(std::string("ffn.experts.mlp.") + name, {count * inner, width});
        map.in_out = in_out;
        map.d_in = in_out ? inner : width;
        map.d_out = in_out ? width : inner;
        map.first = expert * inner * width;
        return map;
    };
    FeedForward part;
    part.activation = &activation;
    part.gate = matrix("w1", false);
    part.up = matrix("v1", false);
    part.down = matrix("w2", true);
    return part;
}

Experts dbrx_experts(const BlockReader& reader) {
    const ModelConfig config = reader.config.part("ffn_config");
    Experts part;
    part.count = config.whole("moe_num_experts", 4);
    part.chosen = config.whole("moe_top_k", 1);
    if (part.chosen == 0 || part.chosen > part.count)
        config.fail("moe_top_k", "1 to ", part.count, ", the number of experts");
    part.router = reader.linear("ffn.router.layer", reader.width(), part.count);
    const nlohmann::json& power = config.at("moe_normalize_expert_weights");
    const bool is_default =
        power.is_null() && !reader.config.at("ffn_config").contains("moe_normalize_expert_weights");
    part.normalise = is_default || !power.is_null();
    part.norm_power = config.number("moe_normalize_expert_weights", 1);
    if (!(part.norm_power > 0)) config.fail("moe_normalize_expert_weights", "a number above 0");
    const nlohmann::json& named = config.at("ffn_act_fn");
    std::string name = "silu";
    if (named.is_object() && named.contains("name") && named["name"].is_string())
        name = named["name"];
    const Activation& activation = reader.activation(name);
    const std::size_t inner = config.whole("ffn_hidden_size", 3584);
    auto all = std::make_shared<std::vector<FeedForward>>();
    for (std::size_t e = 0; e < part.count; ++e)
        all->push_back(dbrx_expert(reader, activation, inner, part.count, e));
    part.expert = [all](std::size_t e) { return (*all)[e]; };
    return part;
}

TransformerBlock dbrx_block(BlockReader& reader) {
    TransformerBlock block;
    block.attention_norm = reader.norm("norm_attn_norm.norm_1");
    block.ffn_norm = reader.norm("norm_attn_norm.norm_2");
    AttentionPart part = reader.attention();
    const ModelConfig config = reader.config.part("attn_config");
    part.clip = bound_of(config, "clip_qkv");
    // Older files have the base here alone.
    if (config.gives("rope_theta") && !reader.config.gives("rope_theta") &&
        !reader.config.gives("rope_parameters")) {
        nlohmann::json rope = reader.config.rope();
        rope["rope_theta"] = config.at("rope_theta");
        part.rotation = reader.rotation(part.d_k, rope);
    }
    block.mixer = std::move(part);
    block.ffn = dbrx_experts(reader);
    return block;
}

void adjust_cohere_row(const ModelConfig& config, FamilyRow& row) {
    if (!config.flag("use_qk_norm")) return;
    row.query_norm = "self_attn.q_norm";
    row.key_norm = "self_attn.k_norm";
}

/// Each head has a row of the norm's weight.
void check_head_norms(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (!part.query_norm) return;
    reader.tensors.get(reader.full(reader.row.query_norm) + ".weight", {part.heads, part.d_k});
    reader.tensors.get(reader.full(reader.row.key_norm) + ".weight", {part.kv_heads, part.d_k});
}

void adjust_logits(ModelReader& reader) {
    reader.spec.logit_factor = reader.config.number("logit_scale", 0.0625);
}

// Layers without a window have no positions at all.
void adjust_cohere2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (reader.layer_type() != "sliding_attention") part.rotation.reset();
}

void adjust_moe_row(const ModelConfig& config, FamilyRow& row) {
    if (config.at("rms_norm_eps").is_null()) return;
    row.rms = true;
    row.eps = "rms_norm_eps";
}

/// The layers before those with experts have a pattern of their own, and so have those after.
std::size_t moe_type(const BlockReader& reader, std::size_t layer) {
    const std::size_t dense = reader.config.whole("first_k_dense_replace", 0);
    const bool is_first = layer < dense;
    const std::size_t every = reader.config.whole(is_first ? "prefix_dense_sliding_window_pattern"
                                                           : "sliding_window_pattern");
    const std::size_t index = layer - (is_first ? 0 : dense);
    return every != 0 && (index + 1) % every != 0;
}

void adjust_moe(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    const bool dense = !has_experts_from(reader, config.whole("first_k_dense_replace", 0));
    const std::size_t first_pattern = config.whole("prefix_dense_sliding_window_pattern", 1);
    if (!part.window_left && (!dense || first_pattern != 1)) part.rotation.reset();
    config.at("prefix_dense_intermediate_size");  // the tensors show it
    if (is_attention_alone(block)) return;
    auto* const routed = std::get_if<Experts>(&block.ffn);
    if ((routed == nullptr) != dense)
        config.fail("mlp_layer_types", "the type that the tensors of layer ", reader.layer,
                    " show");
    if (routed == nullptr) return;
    const std::string choice = config.text("expert_selection_fn", "softmax");
    if (choice != "softmax" && choice != "sigmoid")
        config.fail("expert_selection_fn", "softmax or sigmoid");
    if (choice == "sigmoid")
        routed->scores = Experts::Scores::sigmoid;
    else
        routed->normalise = false;  // softmax over the chosen ones
    if ((config.whole("num_shared_experts", 0) != 0) != routed->shared.has_value())
        config.fail("num_shared_experts", "the number of shared experts in the tensors");
    if (!routed->shared) return;
    const std::string sum = config.text("shared_expert_combination_strategy", "average");
    if (sum != "average" && sum != "sum")
        config.fail("shared_expert_combination_strategy", "average or sum");
    if (sum == "average") routed->factor = routed->shared_factor = 0.5;
}

void adjust_olmo(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.clip = bound_of(reader.config, "clip_qkv");
}

std::size_t dbrx_kv_heads(const ModelConfig& config) {
    return config.part("attn_config").whole("kv_n_heads", 1);
}

constexpr RowFunction functions[] = {
    NAMED(adjust_phi_row), NAMED(adjust_stablelm_row), NAMED(adjust_stablelm),
    NAMED(dbrx_block),     NAMED(adjust_cohere_row),   NAMED(check_head_norms),
    NAMED(adjust_logits),  NAMED(adjust_cohere2),      NAMED(adjust_moe_row),
    NAMED(moe_type),       NAMED(adjust_moe),          NAMED(adjust_olmo),
    NAMED(dbrx_kv_heads)};

}  // namespace
}  // namespace attn::io::rows_layer_norm

constinit const attn::io::RowFunctions attn::io::layer_norm_functions = rows_layer_norm::functions;
