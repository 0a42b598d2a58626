// Linear attention: outputs from a recurrent state instead of a softmax over keys.
//
// Per batch entry and key head, with S_0 the past state or zeros, for t = 1, 2, ...:
//     S_t = e^g_t S_{t-1} + k_t u_t^T                                    (d_k, d_v)
//     u_t = v_t                                                          rules linear and gated
//     u_t = beta_t (v_t - (e^g_t S_{t-1})^T k_t)             rules delta and gated_delta
//     o_t = scale S_t^T q_t                         for every query head of the group
//     o_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T q_t        with a bonus u, of RWKV-6
// where e^g_t is a number or, one per key dimension, a diagonal matrix; 1 without decay.
// Source: ONNX LinearAttention, opset 27; Katharopoulos et al. 2020 (linear), Sun et al. 2023
// (RetNet), Yang et al. 2023 (GLA), Peng et al. 2024 (RWKV-6, arXiv 2404.05892), Yang et al. 2024
// (DeltaNet, Gated DeltaNet).
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/attention.hpp"

namespace attn {

/// Arrays that are written in the same pass if requested; null if not.
template <class T>
struct LinearOutputs {
    HeadRows<T> context;         ///< of the call's query rows
    T* states = nullptr;         ///< (batch, kv_heads, query rows, d_k, d_v), after each step
    T* present_state = nullptr;  ///< (batch, kv_heads, d_k, d_v), after the last step
};

/// Step by step, all arithmetic in T and in ONNX's order. Keys and values have one row per token of
/// the sequence; the call's query rows are tokens first_query, first_query + 1, ... Requires memory
/// for O(threads * d_v) elements besides the outputs and one state per worker.
template <class T>
void attend_sequential(const AttentionCall<T>& call, const LinearOutputs<T>& outputs,
                       ThreadPool& pool);

/// The same in chunks of tokens, by matrix products of a fused kernel, without `states`, which must
/// be null. Requires memory for one chunk per worker besides the outputs. Chunks with operands or
/// results that are infinite or NaN are computed step by step.
template <class T>
void attend_chunked(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                    const LinearOutputs<T>& outputs, ThreadPool& pool);

/// Records the step of the call's first query for explanations, from the state before it on, under
/// the names of `all_arrays`.
template <class T>
void trace_step(const AttentionCall<T>& call, Recorder& recorder);

/// weights(batch, heads, query rows, kv_len): what each token gives to each output, 0 after it, so
/// that o_t = sum_s weights[t, s] v_s plus what the past state gives. One row follows from
/// r_t = q_t by s = t, t - 1, ...: w_s = r_s k_s (times beta_s for the delta rules), which scale
/// multiplies, then r_{s-1} = e^g_s (r_s - w_s k_s), the second term for the delta rules alone.
template <class T>
void linear_weights(const AttentionCall<T>& call, T* weights, ThreadPool& pool);

/// RetNet's divisors of the weights and outputs of each row, (batch, heads, query rows, 1):
/// max(sqrt(d_t), |r_t|), with d_t = e^g_t d_{t-1} + 1, the sum of row t of the decays, and r_t the
/// sum of the weights, scale q_t z_t with z_t = e^g_t z_{t-1} + k_t. The paper divides the decays
/// by sqrt(d_t), then the weights by max(|sum|, 1), which is the same. One decay per token and
/// head.
template <class T>
Tensor4<T> retention_divisors(const AttentionCall<T>& call, ThreadPool& pool);

}  // namespace attn
