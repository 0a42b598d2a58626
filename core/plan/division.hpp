// The division of a question among processes: batch entries and heads first, then rows.
#pragma once

#include "core/plan/plan.hpp"

namespace attn {

/// Indices [first, first + count).
struct IndexRange {
    std::size_t first = 0, count = 0;

    bool operator==(const IndexRange&) const = default;
};

/// The part of a question that one process computes: some batch entries and heads, of which it has
/// some rows. The processes that have the same batch entries and heads are a ring, in which keys
/// and values travel from each to the next.
struct Share {
    IndexRange batches, heads, kv_heads;
    std::size_t head_parts = 1;  ///< that heads are divided into
    std::size_t ring = 0;        ///< which ring
    std::size_t ring_rank = 0;   ///< in the ring
    std::size_t ring_size = 1;   ///< 1: nothing travels
};

/// The share of process `rank` of `ranks`. Batch entries are divided as far as their number and
/// `ranks` have a common divisor, then key heads with the rest of the ranks, then rows, so that all
/// shares have the same size, up to a row. Batch entries are not divided if a mask from a file,
/// lengths or dropout count them from the first; nor heads, if such a mask, sinks, alibi or dropout
/// do, or if the columns of the result concatenate them.
Share share_of(const Plan& plan, std::size_t rank, std::size_t ranks);

/// Rows of a sequence of `length` rows that the process `ring_rank` has: of twice as many chunks as
/// processes, the one of this index and the one as far from the end. Under a causal mask, early
/// queries have few keys and late ones many; each process then has as much work as the others, with
/// the keys of every other process too. Source: Brandon et al. 2023, arXiv 2311.09431, section 3,
/// which divides single tokens for the same reason.
std::array<IndexRange, 2> chunks_of(std::size_t length, std::size_t ring_rank,
                                    std::size_t ring_size);

}  // namespace attn
