// Parts that DeepSeek models share with other families: latent attention, grouped routers, and
// settings of the rotary embedding.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/block.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::io {

/// The tensor names of latent attention.
struct LatentNames {
    std::string_view query = "self_attn.q_proj", query_down = "self_attn.q_a_proj",
                     query_norm = "self_attn.q_a_layernorm", query_up = "self_attn.q_b_proj",
                     key_down = "self_attn.kv_a_proj_with_mqa",
                     key_norm = "self_attn.kv_a_layernorm", key_up = "self_attn.kv_b_proj",
                     out = "self_attn.o_proj";
};

/// Latent attention from the keys of DeepSeek's configs; `pairs` is its rotary embedding, or none.
AttentionPart latent_attention(const BlockReader& reader, const LatentNames& names,
                               std::optional<Rope> pairs);

/// Experts chosen by score + bias in the best groups.
Experts grouped_experts(const BlockReader& reader, const ExpertNames& names, std::string_view bias);

/// The elements of the layer's tensor. Errors: kind input unless it has `count` elements.
std::vector<double> numbers_of(const BlockReader& reader, const std::string& name,
                               std::size_t count);

}  // namespace attn::io
