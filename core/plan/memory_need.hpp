// The memory that a question needs, from shapes alone.
#pragma once

#include "core/plan/plan.hpp"

namespace attn {

/// Bytes at the peak, about; operands and emitted copies included.
struct MemoryNeed {
    double layer = 0;  ///< parameters, and all that has a row a token
    double steps = 0;  ///< all that has a number for each query and key

    double total() const { return layer + steps; }
};

/// Takes sizes that no machine has room for. The plan must be whole but for its cost.
MemoryNeed memory_need(const Plan& plan, const OperandShapes& operands, const PlanOptions& options);

/// Of what is still there while the answer is written.
double memory_of_answer(const Plan& plan, const PlanOptions& options);

}  // namespace attn
