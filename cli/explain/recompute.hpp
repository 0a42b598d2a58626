// Recomputes the attention of one query of a result from its stored arrays.
#pragma once

#include "cli/explain/explanation.hpp"

namespace attn::cli {

/// Runs the reference on one row of queries, continuing at each step with the stored array if there
/// is one. On entry the source's result holds the arrays of the file, with the row of the plan's
/// first query; on return also every step that follows from them. Sets the source's additive_masks,
/// has_unknown_mask, recomputed and missing. Errors: kind input if a stored array differs from what
/// the arrays before it give.
void recompute(ExplanationSource& source);

/// The same for linear attention: one step of the state, what the query reads, and its weights,
/// from stored queries, keys, values and states and constants of decay and beta. Sets also
/// `unstored`.
void recompute_step(ExplanationSource& source);

}  // namespace attn::cli
