// The properties of a family of whole models, one row each: the names of its tensors, its norms,
// attention, feed-forward part and order. Names of modules are without ".weight" and ".bias"; '#'
// is the number of a layer or an expert. An empty name: the family has no such module. The source
// of each row is the family's module in transformers 5.23.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/block.hpp"

namespace attn::io {

class BlockReader;
class ModelConfig;
class ModelReader;

/// How heads are rotated, unless the row's own function says more.
enum class Rotary { none, half, interleaved };

/// Which layers have a sliding window, if layer_types is missing.
enum class Windowed {
    none,
    all,          ///< where sliding_window is not null
    qwen,         ///< use_sliding_window, from max_window_layers on
    alternating,  ///< every second layer, from 0
    pattern       ///< but every sliding_window_pattern-th
};

/// Tensors of experts. Each expert has modules of its own, or all are stacked in one tensor.
struct ExpertNames {
    std::string_view router = "mlp.gate";
    std::string_view gate = "mlp.experts.#.gate_proj", up = "mlp.experts.#.up_proj",
                     down = "mlp.experts.#.down_proj";
    std::string_view stacked_gate_up = "mlp.experts.gate_up_proj",
                     stacked_down = "mlp.experts.down_proj";
    bool stacked_in_out = false;
    FeedForward::Joined stacked_joined = FeedForward::Joined::gate_first;
    std::string_view shared = {};  ///< module of a shared expert with gate_proj, up_proj, down_proj
    std::string_view shared_gate = {};
    std::string_view count = "num_experts", chosen = "num_experts_per_tok";  ///< keys
    Experts::Scores scores = Experts::Scores::softmax;
    bool normalise = false;         ///< unless norm_topk_prob says otherwise
    bool stacked_by_shape = false;  ///< matrices of a stack are (d_in, d_out) where shapes say so
    /// The key of the number of shared experts. Empty: the file shows whether there are any.
    std::string_view shared_count = {};
};

struct FamilyRow {
    std::string_view type = {};          ///< model_type
    std::string_view part = {};          ///< the key of the config that describes the text model
    std::string_view prefix = "model.";  ///< of all tensors; other usual ones are tried as well
    std::string_view layer = "layers.#.";

    std::string_view ids = "embed_tokens", positions = {}, segments = {}, embedding_norm = {},
                     embedding_projection = {};
    std::string_view final_norm = "norm", head = "lm_head";

    bool rms = true;  ///< RMS norms, else LayerNorms
    bool norm_plus_one = false;
    bool norm_has_weight = true;
    std::string_view eps = "rms_norm_eps";  ///< key

    BlockOrder order = BlockOrder::sequential;
    bool ffn_shares_norm = false;
    std::string_view attention_norm = "input_layernorm", attention_post_norm = {},
                     attention_sum_norm = {};
    std::string_view ffn_norm = "post_attention_layernorm", ffn_post_norm = {}, ffn_sum_norm = {};

    JoinedHeads joined = JoinedHeads::separate;
    bool in_out = false;  ///< matrices are (d_in, d_out)
    std::string_view query = "self_attn.q_proj", key = "self_attn.k_proj",
                     value = "self_attn.v_proj", out = "self_attn.o_proj";
    std::string_view query_norm = {}, key_norm = {};
    bool norms_whole = false, norms_after_rotation = false;
    Rotary rotary = Rotary::half;
    bool causal = true;
    Windowed windowed = Windowed::none;

    /// Without `gate`: the plain form. `up` holds both if they are joined.
    std::string_view gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
    FeedForward::Joined ffn_joined = FeedForward::Joined::no;
    std::string_view activation = "hidden_act";  ///< key; empty: GELU
    const ExpertNames* experts = nullptr;        ///< null: none

    /// Ends of names of tensors in blocks that have no effect.
    std::span<const std::string_view> ignored = {};

    /// What the row cannot say: of the embedding and the heads, of one block.
    void (*adjust_model)(ModelReader&) = nullptr;
    void (*adjust)(BlockReader&, TransformerBlock&) = nullptr;
    /// Makes the block alone.
    TransformerBlock (*make_block)(BlockReader&) = nullptr;

    /// Fields of ModelInput that the model needs besides or instead of token ids: "pixel_values".
    std::span<const std::string_view> inputs = {};
    /// Whether a layer has experts; null: where the file has their router.
    bool (*has_experts)(const BlockReader&) = nullptr;
    const ExpertNames* other_experts = nullptr;  ///< other names, if the file has these
    /// The type of a layer, if layer_types is missing; null: that of `windowed`.
    std::string (*layer_rule)(const BlockReader&, std::size_t layer) = nullptr;

    /// Values where the config has no such key.
    std::string_view activation_name = {};
    double eps_value = 1e-5;
    /// The start of the names of a block's tensors; null: `layer` with its number.
    std::string (*layer_name)(const ModelConfig& config, std::size_t layer) = nullptr;
    /// The same family with other names of tensors, which is taken if a file has those; null: none.
    const FamilyRow* other_names = nullptr;
    /// Changes the row by the settings of a config, before anything is read with it.
    void (*adjust_row)(const ModelConfig&, FamilyRow&) = nullptr;
    /// The number of key heads, where num_key_value_heads does not say it.
    std::size_t (*kv_heads)(const ModelConfig&) = nullptr;
    std::size_t window_pattern = 6;  ///< of Windowed::pattern, where the config gives none

    /// Of a model with an encoder, which is this row: its decoder.
    const FamilyRow* decoder = nullptr;
    /// Cross attention of a decoder's blocks.
    std::string_view cross_query = {}, cross_key = {}, cross_value = {}, cross_out = {};
    std::string_view cross_norm = {}, cross_post_norm = {}, cross_sum_norm = {};
    /// Keys.
    std::string_view layers_key = "num_hidden_layers", heads_key = "num_attention_heads",
                     kv_heads_key = "num_key_value_heads";
    /// Where `ids` and `prefix` are tried next.
    std::span<const std::string_view> other_ids = {}, other_prefixes = {};
    /// The feed-forward part, instead of `gate`, `up` and `down`.
    FeedForward (*make_ffn)(const BlockReader&) = nullptr;
};

/// Changes some fields of another row: constexpr auto row = with(llama, [](FamilyRow& r) {...}).
template <class Change>
constexpr FamilyRow with(FamilyRow row, std::string_view type, const Change& change) {
    row.type = type;
    change(row);
    return row;
}
constexpr FamilyRow with(FamilyRow row, std::string_view type) {
    row.type = type;
    return row;
}

/// The row of a model_type, or null; and the types of all rows.
const FamilyRow* find_family_row(std::string_view model_type);
std::vector<std::string_view> family_types();

}  // namespace attn::io
