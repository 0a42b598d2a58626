// Statistics of the weights by a fused kernel, on all threads, without the (q, k) weights in
// memory.
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/attention.hpp"
#include "core/operator/row_statistics.hpp"

namespace attn {

/// Computes the statistics that `arrays` has, up to rounding those of all weights. Values and
/// dropout are not used. Requires memory for a bounded number of rows of kv_len elements, and for
/// O(threads * arrays.top()). The result does not depend on the number of threads. mask_method must
/// be neg_inf. Errors: std::bad_alloc.
template <class T>
void fused_statistics(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                      StatisticArrays<T>& arrays, ThreadPool& threads);

}  // namespace attn
