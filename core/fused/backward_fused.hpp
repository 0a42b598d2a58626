// The gradients of the operator by a fused kernel, on all threads, without a (q, k) array.
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/backward.hpp"

namespace attn {

/// Backpropagates the gradient of the context, (batch, heads, q_len, d_v). Each row's error is at
/// most twice that of plain arithmetic in T. Queries whose keys are all masked have gradient 0, and
/// the contents of masked keys and values do not affect the gradients of a query. Requires memory
/// for a bounded number of rows of kv_len elements per thread, besides the gradients. The result
/// does not depend on the number of threads, and is the same for all kernels with a fused
/// multiply-add. The call must have neither formulas nor top_k, and mask_method must be neg_inf.
/// Errors: std::bad_alloc.
template <class T>
AttentionGradients<T> backward_fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                                     const Tensor4<T>& grad_context, ThreadPool& pool);

}  // namespace attn
