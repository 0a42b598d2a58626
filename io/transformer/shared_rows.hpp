// What files of rows include: the readers, and the rows and functions that several of them share.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/products.hpp"
#include "core/model/stages.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {

/// Name endings of buffers in older files.
inline constexpr std::string_view rotary_buffers[] = {"rotary_emb.inv_freq"};

/// Llama's row, on which most others are based.
inline constexpr FamilyRow llama_row{.type = "llama", .ignored = rotary_buffers};

inline constexpr ProjectionModules out_proj_modules{"self_attn.q_proj", "self_attn.k_proj",
                                                    "self_attn.v_proj", "self_attn.out_proj"};

/// A row with LayerNorms, a plain feed-forward layer and no rotation.
inline constexpr FamilyRow layer_norm_row{.rms = false,
                                          .eps = "layer_norm_eps",
                                          .rotary = Rotary::none,
                                          .ffn = {{}, "mlp.fc1", "mlp.fc2"}};

/// Norms on each head of queries and keys.
constexpr void set_head_norms(FamilyRow& row) {
    row.query_norm = "self_attn.q_norm";
    row.key_norm = "self_attn.k_norm";
}
inline constexpr FamilyRow head_norms_row = with(llama_row, "", set_head_norms);

/// The row of a text model for a model that has it as a part, with its tensors under `prefix`.
constexpr FamilyRow in_text_config(FamilyRow row, std::string_view type, std::string_view prefix) {
    row.type = type;
    row.part = "text_config";
    row.prefix = prefix;
    return row;
}
constexpr FamilyRow in_text_config(const FamilyRow& row, std::string_view type) {
    return in_text_config(row, type, row.prefix);
}

/// Norms on the outputs of both parts, not on their inputs (OLMo 2).
inline constexpr FamilyRow norms_after_row = with(head_norms_row, "", [](FamilyRow& row) {
    row.attention_norm = {};
    row.attention_post_norm = "post_attention_layernorm";
    row.ffn_norm = {};
    row.ffn_post_norm = "post_feedforward_layernorm";
});

/// Whether only the attention is read, as from a file of a layer's own tensors.
inline bool is_attention_alone(const TransformerBlock& block) {
    return std::holds_alternative<std::monostate>(block.ffn);
}

inline bool always_has_experts(const BlockReader& /*reader*/) {
    return true;
}
/// From layer first_k_dense_replace on.
bool has_experts_after_dense(const BlockReader& reader);
/// If mlp_layer_types is "sparse"; without it, from layer `first` on.
bool has_experts_from(const BlockReader& reader, std::size_t first);
/// The same from layer first_k_dense_replace (default 1) on.
bool has_experts_by_type(const BlockReader& reader);
/// Every decoder_sparse_step-th layer that is not in mlp_only_layers.
bool has_experts_by_step(const BlockReader& reader);

/// Llama 4's factor on queries by their position, from llama_4_scaling_beta of the rotary settings.
std::function<double(double)> position_factor(const BlockReader& reader,
                                              const nlohmann::json& rope);

/// Experts in a module block_sparse_moe (Mixtral), or feed_forward (Llama 4).
inline constexpr ExpertNames sparse_experts{.module = "block_sparse_moe.", .has_letters = true},
    feed_forward_experts{.module = "feed_forward.", .router = "router"};

/// The bias of DeepSeek V3's router, as files and as the library have it.
inline constexpr std::string_view correction_bias =
    "gate.e_score_correction_bias e_score_correction_bias";

/// DeepSeek V3's router: a sigmoid, groups, a bias for the choice, a factor on the weights.
constexpr ExpertNames with_groups(ExpertNames names, std::string_view bias = correction_bias) {
    names.scores = Experts::Scores::sigmoid;
    names.choice_bias = bias;
    names.factor = "routed_scaling_factor";
    names.sum_eps = 1e-20;
    names.least_in_group = 2;
    return names;
}

/// Latent attention of the layer's `module` with an output projection `out`, from the keys of
/// DeepSeek's configs; `pairs` is its rotary embedding, or none.
AttentionPart latent_attention(const BlockReader& reader, std::optional<Rope> pairs,
                               const std::string& module = "self_attn.",
                               const std::string& out = "o_proj");

/// A LayerNorm of this width that the row does not describe.
NormSpec layer_norm_of(const TensorSet& tensors, const std::string& name, double eps,
                       std::size_t width);

/// The bound of scores, logits or projections, 0 without one. Errors: kind input for 0 in the file.
double bound_of(const ModelConfig& config, const std::string& key);

/// Whether the layer has no rotary embedding, by no_rope_layers or no_rope_layer_interval.
bool is_without_rotation(const BlockReader& reader, std::size_t layer);

// The inputs of audio models, convolutions, and of image models: patches, and the image sizes in
// their configs.

/// name.weight, (output channels, input channels per group, taps), and name.bias if there is one. A
/// size of 0 accepts the tensor's. Errors: kind input if the weight is missing or has another
/// shape.
Convolution convolution_of(const TensorSet& tensors, const std::string& name, std::size_t d_in,
                           std::size_t taps, std::size_t groups = 1);

/// The same for a weight-normalized convolution: directions, and one magnitude per tap.
Convolution normed_convolution_of(const TensorSet& tensors, const std::string& name,
                                  std::size_t d_in, std::size_t taps, std::size_t groups);

/// Rows and columns, from one integer for both or a list of two. Errors: kind input.
std::array<std::size_t, 2> pair_of(const ModelConfig& config, const std::string& key);

/// Rows and columns of patches, in the given image or else in the image size of the config.
std::array<std::size_t, 2> grid_of(const BlockReader& reader);

/// The convolution `name` over patches of pixels, the tokens before them and the table of
/// positions, or null, in the module "embeddings.".
PatchInput patches_of(const ModelReader& reader, const std::string& name,
                      const std::vector<const char*>& tokens, const char* positions);

// The row of BERT, on which the rows of other encoders are based.

inline void adjust_bert(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.causal = reader.config.flag("is_decoder");
}
inline void adjust_bert_model(ModelReader& reader) {
    if (reader.config.flag("add_cross_attention"))
        throw IncompleteModel(ErrorKind::input, reader.config.place(),
                              "add_cross_attention is true; expected false: attention to the "
                              "states of another model is not computed");
    reader.spec.causal = reader.config.flag("is_decoder");
}

/// Positions begin after pad_token_id and do not count padding tokens (fairseq).
inline void count_after_padding(ModelReader& reader) {
    const std::size_t padding = reader.config.whole("pad_token_id");
    reader.spec.embedding.first_position = static_cast<std::int64_t>(padding) + 1;
    reader.spec.embedding.padding_id = padding;
}
inline void adjust_roberta_model(ModelReader& reader) {
    adjust_bert_model(reader);
    count_after_padding(reader);
}

inline constexpr FamilyRow bert_row{.type = "bert",
                                    .prefix = "bert.",
                                    .layer = "encoder.layer.#.",
                                    .ids = "embeddings.word_embeddings",
                                    .positions = "embeddings.position_embeddings",
                                    .segments = "embeddings.token_type_embeddings",
                                    .embedding_norm = "embeddings.LayerNorm",
                                    .final_norm = {},
                                    .head = {},
                                    .rms = false,
                                    .eps = "layer_norm_eps",
                                    .attention_norm = {},
                                    .attention_sum_norm = "attention.output.LayerNorm",
                                    .ffn_norm = {},
                                    .ffn_sum_norm = "output.LayerNorm",
                                    .attention = {"attention.self.query", "attention.self.key",
                                                  "attention.self.value", "attention.output.dense"},
                                    .rotary = Rotary::none,
                                    .causal = false,
                                    .ffn = {{}, "intermediate.dense", "output.dense"},
                                    .adjust_model = adjust_bert_model,
                                    .adjust = adjust_bert};

}  // namespace attn::io
