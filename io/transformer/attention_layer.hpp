// One layer of attention: of tensors with known names, or of a block of a model with a config.
#pragma once

#include <utility>

#include "core/layer/norm.hpp"
#include "core/layer/weights.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {

/// The properties of a norm that tensors do not determine.
struct NormSettings {
    NormForm form = NormForm::layer;
    double eps = 0;
    bool may_lack_bias = false;  ///< of a LayerNorm
};

/// The projections and the norms of heads, one part for each independent head. Errors: kind input,
/// naming the tensor, for inconsistent shapes.
std::vector<AttentionPart> named_parts(const std::shared_ptr<const ArrayFile>& file,
                                       const ModelLayer& layer, std::size_t heads,
                                       const NormSettings& norms);

/// The properties of an embedding that tensors do not determine.
struct EmbeddingSettings {
    std::int64_t first_position = 0;
    std::optional<double> scale;  ///< empty: 1
    NormSettings norm;            ///< after the sum, if the family has one
};

/// Errors: kind input for tensors that are missing or do not match; SettingError with key
/// "token_ids" if the family has no embedding.
EmbeddingSpec named_embedding(const std::shared_ptr<const ArrayFile>& file, const ModelLayer& layer,
                              const EmbeddingSettings& settings);

/// The table of the embedding of ids, or null.
const StoredArray* named_ids(const ArrayFile& file, const ModelLayer& layer);

/// Whether the file holds the model's norm before this attention layer.
bool has_pre_norm(const ArrayFile& file, const ModelLayer& layer);

/// The model's norm before this attention layer. Errors: SettingError with key "pre_norm" if the
/// family has none; otherwise as above.
NormSpec named_pre_norm(const std::shared_ptr<const ArrayFile>& file, const ModelLayer& layer,
                        const NormSettings& settings);

/// The width of the layer's input, of its context, and of all its queries (of one head in a
/// wrapper), from the shapes alone. 0 if they are not those of matrices.
struct LayerWidths {
    std::size_t d_in = 0, context = 0, queries = 0;
};
LayerWidths layer_widths(const ArrayFile& file, const ModelLayer& layer);

/// The length of the heads' axis of the query's weight; 0: it has none.
std::size_t stored_heads(const ArrayFile& file, const ModelLayer& layer);

/// The shapes of the layer's tensors by their names.
std::vector<std::pair<std::string, std::vector<std::size_t>>> weight_shapes(
    const ArrayFile& file, const ModelLayer& layer);

// The attention of one block as a layer of `attn multihead`: its projections, its norms and the
// settings that a request has.

/// Refers to the parameters of its model, which must outlive it.
struct AttentionLayer {
    AttentionPart part;
    std::optional<NormSpec> norm;  ///< before the layer
    std::string norm_name;         ///< its module
    nlohmann::json settings;       ///< by the keys of requests: heads, causal, scale, rope, ...
    /// Shapes of the parameters, by the names query.weight, query.bias, ...
    std::vector<std::pair<std::string, std::vector<std::size_t>>> shapes;
};

/// The attention of block `layer`; of a file with the layer's tensors alone too. Errors: those of
/// OpenModel::specify and check; kind usage with the key "layer" if the model has no such block;
/// kind unsupported if the block's attention has a part that `attn multihead` does not compute,
/// which the message names.
AttentionLayer attention_layer(const OpenModel& model, std::size_t layer);

/// Splits the layer's widths among another number of heads. Errors: kind usage with the key
/// "heads".
void use_heads(AttentionLayer& layer, std::size_t heads);

/// The norm of a row of `width` numbers.
InputNorm input_norm(const NormSpec& norm, std::size_t width);

/// The parameters of a layer, one part for each independent head: joined projections are split, and
/// a projection without a bias gets zeros if others have one. Errors: kind input, naming the
/// tensor, for damaged files, numbers that are not finite in the dtype, and shapes that do not fit.
AnyLayerWeights read_attention(std::span<const AttentionPart> groups, NumberType dtype,
                               const std::string& location);

}  // namespace attn::io
