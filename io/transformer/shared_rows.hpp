// What files of rows include: the readers, and the functions that several of them share.
#pragma once

#include <array>

#include "core/model/products.hpp"
#include "core/model/stages.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {

/// Whether only the attention is read, as from a file of a layer's own tensors.
inline bool is_attention_alone(const TransformerBlock& block) {
    return std::holds_alternative<std::monostate>(block.ffn);
}

/// If mlp_layer_types is "sparse"; without it, from layer `first` on.
bool has_experts_from(const BlockReader& reader, std::size_t first);

/// Llama 4's factor on queries by their position, from llama_4_scaling_beta of the rotary settings.
QueryFactor position_factor(const BlockReader& reader, const nlohmann::json& rope);

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
/// positions, or null, in the module "embeddings.": the input of the model.
PatchInput& patches_of(const ModelReader& reader, const std::string& name,
                       const std::vector<const char*>& tokens, const char* positions);

// The rows of BERT and RoBERTa, on which those of other encoders are based.

void adjust_bert(BlockReader& reader, TransformerBlock& block, AttentionPart& part);
void adjust_bert_model(ModelReader& reader);

/// Positions begin after pad_token_id and do not count padding tokens (fairseq).
void count_after_padding(ModelReader& reader);

}  // namespace attn::io
