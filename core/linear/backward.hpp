// Gradients of a loss through linear attention.
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/operator/backward.hpp"

namespace attn {

/// With respect to the tensors of a call and its recurrence, in their shapes; without elements
/// where the call has none.
template <class T>
struct LinearGradients : AttentionGradients<T> {
    Tensor4<T> decay;  ///< of the logarithm of the factor, unless `is_plain`
    Tensor4<T> beta, past_state;
};

/// Backpropagates the gradient of the context, (batch, heads, query rows, d_v), token by token in
/// reverse, all arithmetic in T: with G the gradient of the state S_t after a token's step,
///     d q = scale S_t d o, G += scale q d o^T;  d u = G^T k, d k = G u;
///     of a delta rule d v = beta d u, d beta = d u (v - r), G += k d r^T and d k += D S d r with
///     d r = -beta d u;  then d D = rows' sums of G S_{t-1}, G = D G.
/// `divides`: outputs were divided by retention_divisors(), whose derivative is part of it. Keeps
/// the states of all tokens of the heads at work.
template <class T>
LinearGradients<T> linear_backward(const AttentionCall<T>& call, const Tensor4<T>& grad_context,
                                   bool is_plain, bool divides, ThreadPool& pool);

}  // namespace attn
