// The properties of the families of whole models, one row of families.ndjson each: tensor names,
// norms, attention, feed-forward layer and order. Module names are without ".weight" and ".bias";
// '#' is the number of a layer or an expert. An empty name: the family has no such module. The
// source of each row is the family's module in transformers 5.24.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/block.hpp"

namespace attn::io {

class BlockReader;
class ModelConfig;
class ModelReader;

/// The rotary embedding of heads, unless a function of the row changes it.
enum class Rotary { none, half, interleaved };

/// Which layers have a sliding window, if layer_types is missing.
enum class Windowed {
    none,
    all,          ///< if sliding_window is not null
    qwen,         ///< with use_sliding_window, from layer max_window_layers on
    alternating,  ///< every second layer, from layer 0
    pattern       ///< all except every sliding_window_pattern-th
};

/// The projections of attention. `query` holds all three if they are joined.
struct ProjectionModules {
    std::string_view query = {}, key = {}, value = {}, out = {};
};

/// Without `gate`: a plain feed-forward layer. `up` holds both matrices if they are joined.
struct FeedForwardModules {
    std::string_view gate = {}, up = {}, down = {};
};

/// The tensors of experts: separate modules for each expert, or one tensor that stacks all.
struct ExpertNames {
    std::string_view module = "mlp.";  ///< before all names
    bool has_letters = false;  ///< experts have w1, w3 and w2, not gate_proj, up_proj and down_proj
    std::string_view router = "gate";
    std::string_view stacked_gate_up = "experts.gate_up_proj", stacked_down = "experts.down_proj";
    bool stacked_in_out = false;
    FeedForward::Joined stacked_joined = FeedForward::Joined::gate_first;
    std::string_view shared = {};  ///< module with gate_proj, up_proj and down_proj
    std::string_view shared_gate = {};
    std::string_view count = "num_experts", chosen = "num_experts_per_tok";  ///< keys
    Experts::Scores scores = Experts::Scores::softmax;
    bool normalise = false;
    std::string_view normalise_key = "norm_topk_prob";  ///< overrides it; empty: no key does
    bool stacked_by_shape = false;  ///< shapes decide whether stacked matrices are (d_in, d_out)
    /// The key with the number of shared experts. Empty: the tensors show whether there are any.
    std::string_view shared_count = {};
    /// Tensors with a bias for the choice only, of which a file has one, between spaces; empty:
    /// there is none.
    std::string_view choice_bias = {};
    std::string_view factor = {};    ///< key of a factor on the weights; default 1
    double sum_eps = 0;              ///< added to the sum that normalised weights are divided by
    std::size_t least_in_group = 0;  ///< experts in a group of n_group and topk_group; 0: no groups

    std::string in_module(std::string_view name) const {
        return std::string(module) + std::string(name);
    }
};

struct FamilyRow {
    std::string_view type = {};          ///< model_type
    std::string_view part = {};          ///< the key of the config that describes the text model
    std::string_view prefix = "model.";  ///< of all tensors; other common prefixes are tried too
    std::string_view layer = "layers.#.";

    std::string_view ids = "embed_tokens", positions = {}, segments = {}, embedding_norm = {},
                     embedding_projection = {};
    std::string_view final_norm = "norm", head = "lm_head";
    bool always_ties = false;  ///< the embedding is the head, whatever tie_word_embeddings says

    bool rms = true;  ///< RMSNorm, otherwise LayerNorm
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
    ProjectionModules attention = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                   "self_attn.o_proj"};
    std::string_view query_norm = {}, key_norm = {};
    bool norms_whole = false, norms_after_rotation = false;
    Rotary rotary = Rotary::half;
    bool causal = true;
    Windowed windowed = Windowed::none;
    /// Entries of the key layer_types.
    std::vector<std::string_view> layer_types = {"full_attention", "sliding_attention"};

    FeedForwardModules ffn = {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"};
    FeedForward::Joined ffn_joined = FeedForward::Joined::no;
    std::string_view activation = "hidden_act";  ///< key; empty: GELU
    std::optional<ExpertNames> experts = {};     ///< empty: none

    /// Name endings of block tensors without effect.
    std::vector<std::string_view> ignored = {};

    /// Change what fields cannot express: the embedding and the head; one block and its attention.
    void (*adjust_model)(ModelReader&) = nullptr;
    void (*adjust)(BlockReader&, TransformerBlock&, AttentionPart&) = nullptr;
    /// Makes the whole block, instead of the fields.
    TransformerBlock (*make_block)(BlockReader&) = nullptr;

    /// Fields of ModelInput that the model requires, with or instead of token ids: "pixel_values".
    std::vector<std::string_view> inputs = {};
    /// Whether a layer has experts; null: if the file has their router.
    bool (*has_experts)(const BlockReader&) = nullptr;
    std::optional<ExpertNames> other_experts = {};  ///< alternative names, if the file has them
    /// The index of a layer's type in `layer_types` if the config has no layer_types; null:
    /// according to `windowed`.
    std::size_t (*layer_rule)(const BlockReader&, std::size_t layer) = nullptr;

    /// Values if the config has no such key.
    std::string_view activation_name = {};
    double eps_value = 1e-5;
    /// The prefix of a block's tensor names; null: `layer` with its number.
    std::string (*layer_name)(const ModelConfig& config, std::size_t layer) = nullptr;
    /// The same family with alternative tensor names, used if a file has them; null: none.
    const FamilyRow* other_names = nullptr;
    /// Keys of published files without effect, or whose effect the tensors show, between spaces.
    std::string_view passed = {};
    /// Keys of which one value is computed.
    nlohmann::json required = nlohmann::json::object();
    /// Changes of fields by keys of the config that are true, and by those that are false.
    nlohmann::json when = nlohmann::json::object(), unless = nlohmann::json::object();
    /// Changes the row according to a config, before the row is used.
    void (*adjust_row)(const ModelConfig&, FamilyRow&) = nullptr;
    /// The number of key heads, if num_key_value_heads does not give it.
    std::size_t (*kv_heads)(const ModelConfig&) = nullptr;
    std::size_t window_pattern = 6;  ///< for Windowed::pattern, if the config has none

    /// The decoder of an encoder-decoder model, whose encoder is this row.
    const FamilyRow* decoder = nullptr;
    /// Cross-attention of a decoder's blocks: the module in place of that of `query`.
    std::string_view cross = {};
    std::string_view cross_norm = {}, cross_post_norm = {}, cross_sum_norm = {};
    /// Keys of the config.
    std::string_view layers_key = "num_hidden_layers", heads_key = "num_attention_heads",
                     kv_heads_key = "num_key_value_heads";
    /// Keys of the rows of `ids` and `positions`, and of the width inside the feed-forward layer;
    /// empty: the config has no such key.
    std::string_view vocabulary_key = "vocab_size", positions_key = "max_position_embeddings",
                     inner_key = "intermediate_size";
    /// The width inside the feed-forward layer, where it is not simply that of `inner_key`.
    std::size_t (*inner_width)(const BlockReader&) = nullptr;
    /// Alternatives to `ids` and `prefix`, tried in order.
    std::vector<std::string_view> other_ids = {}, other_prefixes = {};
    /// Make the mixer, or the feed-forward layer with its norms, before `adjust`.
    void (*make_mixer)(BlockReader&, TransformerBlock&) = nullptr;
    void (*make_block_ffn)(BlockReader&, TransformerBlock&) = nullptr;
};

/// A function that rows name.
struct RowFunction {
    std::string_view name;
    std::variant<decltype(FamilyRow::adjust_model), decltype(FamilyRow::adjust),
                 decltype(FamilyRow::make_block), decltype(FamilyRow::has_experts),
                 decltype(FamilyRow::layer_rule), decltype(FamilyRow::layer_name),
                 decltype(FamilyRow::adjust_row), decltype(FamilyRow::kv_heads),
                 decltype(FamilyRow::inner_width), decltype(FamilyRow::make_mixer)>
        function;
};
using RowFunctions = std::span<const RowFunction>;

/// The function under its own name.
#define NAMED(function) \
    { #function, function }

/// The functions of each file of related models.
extern const RowFunctions delta_functions, encoder_functions, encoder_decoder_functions,
    gemma_functions, gpt_functions, hybrid_functions, latent_functions, llama_functions,
    shared_functions, vision_functions;

/// The row as a config changes it.
FamilyRow row_for(const FamilyRow& row, const ModelConfig& config);

/// The row of a model_type, or null; and the types of all rows.
const FamilyRow* find_family_row(std::string_view model_type);
std::vector<std::string_view> family_types();

}  // namespace attn::io
