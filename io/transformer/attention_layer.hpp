// The attention of one block as a layer of `attn multihead`: its projections, its norms and the
// settings that a request has.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/layer/norm.hpp"
#include "core/layer/weights.hpp"
#include "core/model/block.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {

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
/// tensor, for damaged files, numbers that are not finite in T, and shapes that do not fit.
template <class T>
LayerWeights<T> read_attention(std::span<const AttentionPart> groups, const std::string& place);

}  // namespace attn::io
