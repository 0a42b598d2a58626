// A question that is divided among the ranks: the rows that one rank has, and the ring that keys
// and values pass through.
#pragma once

#include <array>

#include "cli/mpi/communicator.hpp"
#include "cli/question/question.hpp"
#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"
#include "core/layer/weights.hpp"
#include "core/operator/arrays.hpp"
#include "core/operator/attention.hpp"
#include "core/plan/division.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

template <class T>
struct QueryRows {
    std::size_t first = 0;  ///< the index of row 0
    Tensor4<T> query;       ///< (batch, heads, rows, d_k) of the share
};

template <class T>
struct KeyRows {
    std::size_t first = 0;  ///< the index of row 0
    Tensor4<T> key, value;  ///< (batch, kv_heads, rows, d) of the share
};

/// The two chunks of each (chunks_of).
template <class T>
using OwnQueries = std::array<QueryRows<T>, 2>;
template <class T>
using OwnKeys = std::array<KeyRows<T>, 2>;

template <class T>
struct OwnRows {
    OwnQueries<T> queries;
    OwnKeys<T> keys;
};

/// Reads a share's rows and, in a layer, projects and rotates them. `plan` is that of the share:
/// its sizes of batch and heads. `operands` has the norm, and `weights` is null without
/// projections. Errors: those of reading.
template <class T>
OwnRows<T> read_own_rows(const Plan& plan, const Share& share, const OperandRows& rows,
                         const Operands& operands, const LayerWeights<T>* weights,
                         ThreadPool& pool);

/// Of one chunk of queries.
template <class T>
struct RingResult {
    Tensor4<T> context;    ///< (batch, heads, rows, d_v)
    Tensor4<T> logsumexp;  ///< (batch, heads, rows, 1), the sink included
};

/// The attention of this rank's queries over the keys of all ranks of the ring, whose blocks travel
/// from each rank to the next while the block before is computed. Parts are joined in float64, in
/// the order of their arrival, which does not depend on time. `rules` is a call without queries,
/// keys and values. All ranks of the `world` must call it, whose rings have one size; if a rank
/// fails, all of them throw after the step. Source: Liu et al. 2023, arXiv 2310.01889.
template <class T>
std::array<RingResult<T>, 2> attend_in_ring(const Plan& plan, const AttentionCall<T>& rules,
                                            OwnRows<T> own, const Communicator& ring,
                                            const Communicator& world, ThreadPool& pool);

}  // namespace attn::cli
