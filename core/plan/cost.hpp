// What a plan costs: its arithmetic and its memory, from shapes alone.
#pragma once

#include "core/plan/plan.hpp"

namespace attn {

/// Bytes that core needs at its peak, about; operands and emitted copies included.
struct MemoryNeed {
    double layer;  ///< parameters, and all that has a row a token
    double steps;  ///< all that has a number for each query and key
};

/// Takes sizes that no machine has room for. The plan must be whole but for its cost.
MemoryNeed memory_need(const Plan& plan, const OperandShapes& operands);

Cost cost_of(const Plan& plan, const MemoryNeed& need);

}  // namespace attn
