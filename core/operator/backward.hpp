// The gradients of the operator.
#pragma once

#include "core/operator/attention.hpp"

namespace attn {

/// Gradients of a loss by queries, keys, values and sinks, from its gradient by the context.
template <class T>
struct AttentionGradients {
    /// In the shapes of the call's own tensors; a key head's is summed over its group of query
    /// heads.
    Tensor4<T> query, key, value;
    std::vector<double> sink;  ///< one for each head, summed over batch and queries; or empty
};

}  // namespace attn
