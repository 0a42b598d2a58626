// Gradients of a loss through the operator.
#pragma once

#include "core/operator/attention.hpp"

namespace attn {

/// With respect to the tensors of a call, in their shapes. Those of a key head are summed over its
/// group of query heads.
template <class T>
struct AttentionGradients {
    Tensor4<T> query, key, value;
    std::vector<double> sink;  ///< one for each head; empty without sinks
    std::vector<Array<double>> biases =
        {};  ///< of additive masks, in their shapes; 0 where they block
};

/// Backpropagates the gradient of the context, (batch, heads, q_len, d_v), through the steps of
/// attend(): d weights = d context values^T, and through the softmax d score = weight (d weight -
/// sum of weight d weight over the row). Records the gradients of arrays with an element for each
/// query and key. Masked keys get 0, and their contents are not read; the gradient of the weights
/// is that of the product, also for masked keys.
template <class T>
AttentionGradients<T> attend_backward(const AttentionCall<T>& call, const Tensor4<T>& grad_context,
                                      Recorder& recorder);

}  // namespace attn
