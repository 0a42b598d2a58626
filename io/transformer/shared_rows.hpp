// Rows and functions that several files share.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::io {

/// Name endings of buffers in older files.
inline constexpr std::string_view rotary_buffers[] = {"rotary_emb.inv_freq"};

/// Llama's row, on which most others are based.
inline constexpr FamilyRow llama_row{.type = "llama", .ignored = rotary_buffers};

/// Llama's row with norms on each head of queries and keys.
inline constexpr FamilyRow head_norms_row = with(llama_row, "", [](FamilyRow& row) {
    row.query_norm = "self_attn.q_norm";
    row.key_norm = "self_attn.k_norm";
});

/// Norms on the outputs of both parts, not on their inputs (OLMo 2).
inline constexpr FamilyRow norms_after_row = with(head_norms_row, "", [](FamilyRow& row) {
    row.attention_norm = {};
    row.attention_post_norm = "post_attention_layernorm";
    row.ffn_norm = {};
    row.ffn_post_norm = "post_feedforward_layernorm";
});

inline AttentionPart& attention_of(TransformerBlock& block) {
    return std::get<AttentionPart>(block.mixer);
}

/// Whether only the attention is read, as from a file of a layer's own tensors.
inline bool is_attention_alone(const TransformerBlock& block) {
    return std::holds_alternative<std::monostate>(block.ffn);
}

/// From layer first_k_dense_replace on.
bool has_experts_after_dense(const BlockReader& reader);
/// If mlp_layer_types is "sparse"; without it, from layer `first` on.
bool has_experts_from(const BlockReader& reader, std::size_t first);
/// The same from layer first_k_dense_replace (default 1) on.
bool has_experts_by_type(const BlockReader& reader);
/// Every decoder_sparse_step-th layer that is not in mlp_only_layers.
bool has_experts_by_step(const BlockReader& reader);

/// The groups of experts of n_group and topk_group (default `chosen`), each of at least `least`
/// experts.
void read_groups(const BlockReader& reader, Experts& part, std::size_t chosen, std::size_t least);

/// Llama 4's factor on queries by their position, from llama_4_scaling_beta of the rotary settings.
std::function<double(double)> position_factor(const BlockReader& reader,
                                              const nlohmann::json& rope);

/// A sigmoid router with a bias for the choice only, and a factor on the normalised weights. The
/// bias is the first of these tensors in the file.
void use_sigmoid_router(BlockReader& reader, TransformerBlock& block,
                        std::initializer_list<std::string_view> bias, std::string_view factor);
/// The same with groups of experts, as in DeepSeek V3.
void use_grouped_router(BlockReader& reader, TransformerBlock& block);

/// Marks keys as read that occur in published files but have no effect in transformers.
void pass_keys(const ModelConfig& config, std::initializer_list<const char*> keys);

/// The bound of scores, logits or projections, 0 without one. Errors: kind input for 0 in the file.
double bound_of(const ModelConfig& config, const std::string& key);

/// Whether the layer has no rotary embedding, by no_rope_layers or no_rope_layer_interval.
bool is_without_rotation(const BlockReader& reader, std::size_t layer);

}  // namespace attn::io
