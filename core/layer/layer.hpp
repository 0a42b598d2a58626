// Attention layers: self, causal, multihead and cross with their parameters, and the bare operator.
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"
#include "core/layer/result.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// The keys that each query may attend to, by all masks of the question; -Infinity of an additive
/// mask counts too. The plan must be made for these operands.
Mask mask_of(const Plan& plan, const Operands& operands);

/// Computes the arrays of `plan.emit`. The plan must be made for these operands, which are freed
/// after their last use. Streams of the result use the threads while they are read.
Result compute(const Plan& plan, Operands&& operands, ThreadPool& pool);

}  // namespace attn
