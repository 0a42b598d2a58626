// A question of any type with its exact numbers.
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/check/problem.hpp"

namespace attn {

/// The problem of a question: the same inputs, rounded to its type, the same parameters, drawn in
/// its type if they are drawn, and the same dropout mask. The question's arrays without rounding
/// are the rows of a Candidate with `asked`. The plan must be made for the operands.
Problem exact_question(const Plan& plan, const Operands& operands, ThreadPool& pool);

}  // namespace attn
