// Ring attention: each rank has some queries, and the keys and values of all ranks pass by.
#pragma once

#include "cli/mpi/communicator.hpp"
#include "cli/mpi/own_rows.hpp"
#include "core/base/thread_pool.hpp"
#include "core/operator/attention.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

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
