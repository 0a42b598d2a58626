// The parameters of an attention layer: their layouts, their draws and their application.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "core/base/tensor.hpp"
#include "core/base/torch_random.hpp"
#include "core/plan/settings.hpp"

namespace attn {

/// One projection, or one for each head of the wrapper style.
template <class T>
struct Projection {
    /// (groups, d_out, d_in) as nn.Linear stores it, or (groups, d_in, d_out) where `in_out`.
    Tensor3<T> weight;
    /// (groups, d_out); no elements where there is no bias.
    Tensor2<T> bias;
    bool in_out = false;

    bool has_bias() const { return bias.size() != 0; }
    std::size_t groups() const { return weight.shape(0); }
    std::size_t d_in() const { return weight.shape(in_out ? 1 : 2); }
    std::size_t d_out() const { return weight.shape(in_out ? 2 : 1); }
};

template <class T>
struct LayerWeights {
    Projection<T> query, key, value;
    std::optional<Projection<T>> out;
};

/// A layer's parameters in the precision that it computes in.
using AnyLayerWeights = std::variant<std::shared_ptr<const LayerWeights<float>>,
                                     std::shared_ptr<const LayerWeights<double>>>;

/// Sizes of a layer's parameters; widths are those of one projection: all heads of the split style,
/// one head of the wrapper style.
struct WeightSizes {
    std::size_t d_in, d_context;    ///< columns of the input, and of what gives keys and values
    std::size_t query, key, value;  ///< columns after each projection
    std::size_t joined, d_out;  ///< columns of the joined heads, and after the output projection
    std::size_t groups = 1;     ///< independent heads of the wrapper style
};

/// Draws every parameter in PyTorch's order: for each group W_query, W_key, W_value, each weight
/// followed by its bias; then W_out and its bias. `Init::mha` draws W_out first and sets biases to
/// zero, as nn.MultiheadAttention does. Settings must be resolved (layer.hpp).
template <class T>
LayerWeights<T> draw_weights(const Settings& settings, const WeightSizes& sizes,
                             TorchGenerator& generator);

/// x W^T + b for every group, side by side: (batch, rows, d_in) to (batch, rows, groups * d_out).
/// Arithmetic as in torch_math.hpp, the bias added last.
template <class T>
Tensor3<T> project(const Tensor3<T>& x, const Projection<T>& projection);

}  // namespace attn
