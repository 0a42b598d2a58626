// The operator by a fused kernel, on all threads, without the (q, k) weights in memory.
#pragma once

#include "core/attention.hpp"
#include "core/kernels/kernel.hpp"
#include "core/workers.hpp"

namespace attn {

/// Arrays that are written in the same pass where they are wanted: null where they are not.
template <class T>
struct FusedOutputs {
    HeadRows<T> context;
    T* weights = nullptr;    ///< (batch, heads, q_len, kv_len), after dropout
    T* scores = nullptr;     ///< (batch, heads, q_len, kv_len), unscaled
    T* logsumexp = nullptr;  ///< (batch, heads, q_len)
};

/// What attend() computes, to rounding: each row's error is at most twice that of plain arithmetic
/// in T. Blocked weights are exactly 0. Needs memory for O(threads * kv_len) numbers besides the
/// outputs. The answer does not depend on the number of threads, nor on the kernel among those with
/// a fused multiply-add. mask_method must be neg_inf.
template <class T>
void attend_fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                  const FusedOutputs<T>& outputs, Workers& workers);

}  // namespace attn
