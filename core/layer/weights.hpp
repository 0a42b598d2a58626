// The parameters of an attention layer: projections, norms of heads, draws.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "core/layer/norm.hpp"
#include "core/layer/random_stream.hpp"
#include "core/operator/projection.hpp"
#include "core/plan/operand_shapes.hpp"

namespace attn {

template <class T>
struct LayerWeights {
    Projection<T> query, key, value;
    std::optional<Projection<T>> out;
    /// Of a head, or of all heads together, by their width; before the rotation.
    std::optional<InputNorm> query_norm = {}, key_norm = {};
};

/// A projection whose elements are not set.
template <class T>
Projection<T> allocated(const ProjectionShape& s) {
    Projection<T> p;
    p.in_out = s.in_out;
    p.weight = Tensor3<T>::from_shape(
        {s.groups, s.in_out ? s.d_in : s.d_out, s.in_out ? s.d_out : s.d_in});
    p.bias = Tensor2<T>::from_shape({s.has_bias ? s.groups : 0, s.d_out});
    return p;
}

/// A layer's parameters in the precision of its computation.
using AnyLayerWeights = std::variant<std::shared_ptr<const LayerWeights<float>>,
                                     std::shared_ptr<const LayerWeights<double>>>;

/// Sizes of a layer's parameters; widths are those of one projection: all heads of the split style,
/// one head of the wrapper style.
struct WeightSizes {
    std::size_t d_in, d_context;    ///< columns of the input, and of the source of keys and values
    std::size_t query, key, value;  ///< columns after each projection
    std::size_t joined,
        d_out;               ///< columns of the concatenated heads, and after the output projection
    std::size_t groups = 1;  ///< independent heads of the wrapper style
};

/// Draws every parameter in PyTorch's order, or in that of `draw_order`: for each group W_query,
/// W_key, W_value, each weight followed by its bias; then W_out and its bias. `Init::mha` draws
/// W_out first and sets biases to zero, as nn.MultiheadAttention does. Without a stream none is
/// drawn.
template <class T>
LayerWeights<T> draw_weights(const Settings& settings, const WeightSizes& sizes,
                             RandomStream* stream);

}  // namespace attn
