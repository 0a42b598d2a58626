// The cost of a plan: its arithmetic and its memory, from shapes alone.
#pragma once

#include "core/plan/memory_need.hpp"

namespace attn {

Cost cost_of(const Plan& plan, const MemoryNeed& need, const PlanOptions& options);

}  // namespace attn
