// What rows of several files share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::io {

/// Ends of names of buffers that older files keep.
inline constexpr std::string_view rotary_buffers[] = {"rotary_emb.inv_freq"};

/// Llama's row, of which most others are changes.
inline constexpr FamilyRow llama_row{.type = "llama", .ignored = rotary_buffers};

/// The same with norms of the heads of queries and keys.
inline constexpr FamilyRow head_norms_row = with(llama_row, "", [](FamilyRow& row) {
    row.query_norm = "self_attn.q_norm";
    row.key_norm = "self_attn.k_norm";
});

/// Norms after both parts, before the sums, and none before them (OLMo 2).
inline constexpr FamilyRow norms_after_row = with(head_norms_row, "", [](FamilyRow& row) {
    row.attention_norm = {};
    row.attention_post_norm = "post_attention_layernorm";
    row.ffn_norm = {};
    row.ffn_post_norm = "post_feedforward_layernorm";
});

inline AttentionPart& attention_of(TransformerBlock& block) {
    return std::get<AttentionPart>(block.mixer);
}

/// From first_k_dense_replace on.
bool has_experts_after_dense(const BlockReader& reader);
/// Where mlp_layer_types is "sparse", else from first_k_dense_replace (1) on.
bool has_experts_by_type(const BlockReader& reader);
/// Every decoder_sparse_step-th layer that is not one of mlp_only_layers.
bool has_experts_by_step(const BlockReader& reader);

/// A sigmoid router with a bias for the choice alone, in the first of these tensors that the file
/// has, and a factor on normalised weights.
void use_sigmoid_router(BlockReader& reader, TransformerBlock& block,
                        std::initializer_list<std::string_view> bias, std::string_view factor);
/// The same with groups of experts, as DeepSeek V3's.
void use_grouped_router(BlockReader& reader, TransformerBlock& block);

/// Marks keys of published files that the library does not read.
void pass_keys(const BlockReader& reader, std::initializer_list<const char*> keys);

/// Whether no_rope_layers or no_rope_layer_interval leaves the layer without rotation.
bool is_without_rotation(const BlockReader& reader, std::size_t layer);

}  // namespace attn::io
