// A layer that is found by the names of its tensors: its parameters, its norms and its embedding,
// as the blocks of models have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/layer/norm.hpp"
#include "core/model/model.hpp"
#include "io/model/find_layer.hpp"

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

/// The shapes of the layer's tensors by their names.
std::vector<std::pair<std::string, std::vector<std::size_t>>> weight_shapes(
    const ArrayFile& file, const ModelLayer& layer);

}  // namespace attn::io
