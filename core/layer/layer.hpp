// Attention layers: self, causal, multihead and cross with their parameters, and the bare operator.
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"
#include "core/layer/result.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// Which query may see which key, by every mask of the question; -Infinity of an additive one
/// blocks as well. The plan must be of these operands.
Mask mask_of(const Plan& plan, const Operands& operands);

/// Computes the arrays of `plan.emit`, which must be of these operands. They are let go of as soon
/// as they are used. Streams of the result use the threads while they are read.
Result compute(const Plan& plan, Operands&& operands, ThreadPool& pool);

}  // namespace attn
