// The operator and its projections by a fused kernel, on all threads, without the (q, k) weights in
// memory.
#pragma once

#include "core/base/named_array.hpp"
#include "core/base/thread_pool.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/projection.hpp"
#include "core/operator/row_statistics.hpp"

namespace attn {

/// Arrays that are written in the same pass if requested; null if not.
template <class T>
struct FusedOutputs {
    HeadRows<T> context;               ///< data null: not requested
    T* weights = nullptr;              ///< (batch, heads, q_len, kv_len), after dropout
    T* scores = nullptr;               ///< (batch, heads, q_len, kv_len), unscaled
    T* logsumexp = nullptr;            ///< (batch, heads, q_len)
    double* wide_logsumexp = nullptr;  ///< the same, not rounded to T
    /// The heads of weights and scores, in order; null: all.
    const std::vector<std::size_t>* heads = nullptr;
    std::size_t first_row =
        0;  ///< of (batch * heads * q_len): the row that weights and scores start at
};

/// Equals attend() up to rounding: each row's error is at most twice that of plain arithmetic in T.
/// Masked weights are exactly 0. Requires memory for O(threads * kv_len) elements besides the
/// outputs. The result does not depend on the number of threads, and is the same for all kernels
/// with a fused multiply-add. mask_method must be neg_inf. Errors: std::bad_alloc.
///
/// A call of bfloat16 with 16 queries or more for a key head and numbers from 2^-60 to 2^60 is
/// computed by kernels::PairTable where the processor has it: weights are rounded to bfloat16, sums
/// are float32, and the error of a row is at most about twice that of plain arithmetic with such
/// weights. Processors add the two products of a pair in different ways, so the last digits are
/// their own.
template <class T>
void attend_fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                  const FusedOutputs<T>& outputs, ThreadPool& threads);

/// The weights of a question, or its scores, computed a few MiB at a time while they are read; of
/// `heads` alone, in this order, unless it is null. Not for dropout head by head over several batch
/// entries, whose draws have a different order.
template <class T>
RowStream<T> stream_weights(const kernels::Kernel& kernel,
                            std::shared_ptr<const AttentionCall<T>> call, bool scores,
                            const std::vector<std::size_t>* heads, ThreadPool& threads);

/// Computes the statistics that `arrays` has, up to rounding those of all weights. Values and
/// dropout are not used. Requires memory for a bounded number of rows of kv_len elements, and for
/// O(threads * arrays.top()). The result does not depend on the number of threads. mask_method must
/// be neg_inf. Errors: std::bad_alloc.
template <class T>
void fused_statistics(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                      StatisticArrays<T>& arrays, ThreadPool& threads);

/// Packs neighbouring columns of x W^T + b for `entries.project`: (d_in, lanes), then the bias. The
/// first column's weights are at `weight`: rows of d_in elements, one for each column, or, where
/// `in_out`, rows of `width` elements, one for each input. `bias` is null or the first column's.
template <class T>
void pack_panel(const kernels::Entries<T>& entries, const T* weight, bool in_out, std::size_t width,
                std::size_t d_in, std::size_t columns, const T* bias, T* packed);

/// x W^T + b for each projection, x being (batch, rows, d_in). x is read once for all of them.
/// Products are fused multiply-adds in the order of the inner dimension, starting from the bias;
/// the answer does not depend on the number of threads.
template <class T>
void project_fused(const kernels::Kernel& kernel, const Tensor3<T>& x,
                   std::span<const ProjectionTo<T>> projections, ThreadPool& workers);

}  // namespace attn
