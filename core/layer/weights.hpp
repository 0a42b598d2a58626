// The parameters of an attention layer: projections, norms of heads, draws.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

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

/// Parameters of these shapes, each projection by make("query", shape) and so on.
template <class T, class Make>
LayerWeights<T> weights_of_shapes(const WeightShapes& s, const Make& make) {
    LayerWeights<T> weights{
        make("query", s.query), make("key", s.key), make("value", s.value), {}, {}, {}};
    if (s.out) weights.out = make("out", *s.out);
    return weights;
}

/// Parameters that are not set.
template <class T>
LayerWeights<T> allocated_weights(const WeightShapes& shapes) {
    return weights_of_shapes<T>(
        shapes, [](const char*, const ProjectionShape& s) { return allocated<T>(s); });
}

/// A copy of parameters whose numbers are those that change(number) gives; of norms as they are.
template <class T, class Change>
LayerWeights<T> with_numbers(LayerWeights<T> weights, const Change& change) {
    for_each_projection(weights, [&](const char*, Projection<T>& p) {
        std::transform(p.weight.begin(), p.weight.end(), p.weight.begin(), change);
        std::transform(p.bias.begin(), p.bias.end(), p.bias.begin(), change);
    });
    return weights;
}

/// Draws every parameter in PyTorch's order, or in that of `draw_order`: for each group W_query,
/// W_key, W_value, each weight followed by its bias; then W_out and its bias. `Init::mha` draws
/// W_out first and sets biases to zero, as nn.MultiheadAttention does.
template <class T>
void draw_weights(const Settings& settings, RandomStream& stream, LayerWeights<T>& weights);

}  // namespace attn
