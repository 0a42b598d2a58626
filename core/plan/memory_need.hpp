// The memory that a question needs, from shapes alone.
#pragma once

#include "core/plan/plan.hpp"

namespace attn {

/// Approximate bytes at the peak, including operands and emitted copies.
struct MemoryNeed {
    double layer = 0;  ///< parameters, and all arrays with a row per token
    double steps = 0;  ///< all arrays with an element for each query and key

    double total() const { return layer + steps; }
};

/// Accepts sizes beyond any machine's memory. The plan must be complete except for its cost.
MemoryNeed memory_need(const Plan& plan, const OperandShapes& operands, const PlanOptions& options);

/// Bytes that are still in use while the result is written.
double memory_of_answer(const Plan& plan, const PlanOptions& options);

}  // namespace attn
