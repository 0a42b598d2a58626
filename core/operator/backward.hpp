// Gradients of a loss through the operator.
#pragma once

#include "core/operator/attention.hpp"

namespace attn {

/// By the tensors of a call, in their shapes. Those of a key head are summed over its group of
/// queries' heads.
template <class T>
struct AttentionGradients {
    Tensor4<T> query, key, value;
    std::vector<double> sink;  ///< one for each head; empty without sinks
    std::vector<Array<double>> biases =
        {};  ///< by additive masks, in their shapes; 0 where they block
};

/// From the gradient by the context, (batch, heads, q_len, d_v), in the arithmetic of attend(),
/// whose steps it takes back one by one: d weights = d context values^T, through the softmax
/// d score = weight (d weight - sum of weight d weight over the row). Passes the gradients by
/// arrays with an element for each query and key to the recorder. Masked keys get 0, and what they
/// hold is not read; the gradient by weights is that of the product, also where a key is masked.
template <class T>
AttentionGradients<T> attend_backward(const AttentionCall<T>& call, const Tensor4<T>& grad_context,
                                      Recorder& recorder);

}  // namespace attn
