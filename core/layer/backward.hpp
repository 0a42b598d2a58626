// Gradients of a loss through a layer: its stages in reverse.
#pragma once

#include "core/layer/stages.hpp"

namespace attn {

/// What the forward pass of a layer keeps for its gradients.
template <class T>
struct KeptForBackward {
    Operands operands;      ///< without masks, which the call has
    AttentionCall<T> call;  ///< of queries, keys and values that are rotated, and cached keys
    Tensor4<T> heads;       ///< the context before the output projection; no elements without one
};

/// Records the loss of the context vectors, (batch, heads or 1, rows, d_out), and the gradients
/// that the plan asks for. `weights`: null without projections.
template <class T>
void differentiate(const Stages<T>& stages, KeptForBackward<T>&& kept,
                   const LayerWeights<T>* weights, const Tensor4<T>& context);

}  // namespace attn
