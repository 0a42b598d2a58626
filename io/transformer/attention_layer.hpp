// The attention of one block as a layer of `attn multihead`: its projections, its norms and the
// settings that a request has.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
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
    std::optional<InputNorm> norm;  ///< before the layer
    nlohmann::json settings;        ///< by the keys of requests: heads, causal, scale, rope, ...
    /// Shapes of the parameters, by the names query.weight, query.bias, ...
    std::vector<std::pair<std::string, std::vector<std::size_t>>> shapes;
};

/// The attention of block `layer`. Errors: those of OpenModel::specify and check; kind usage with
/// the key "layer" if the model has no such block; kind unsupported if the block's attention has a
/// part that `attn multihead` does not compute, which the message names.
AttentionLayer attention_layer(const OpenModel& model, std::size_t layer);

/// The parameters of the layer: joined projections are split, and a projection without a bias gets
/// zeros if others have one. Errors: kind input for damaged files.
template <class T>
LayerWeights<T> read_attention(const AttentionLayer& layer, const std::string& place);

}  // namespace attn::io
