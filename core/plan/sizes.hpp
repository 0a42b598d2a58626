// The sizes of one question, read off its operands.
#pragma once

#include "core/plan/plan.hpp"

namespace attn {

/// Whether a layer's answer has a heads axis: multihead always, cross where heads are named.
bool has_heads_axis(const Settings& settings);

/// Fills in the plan's sizes and which axes it shows, and checks that the operands fit each other
/// and the settings, whose widths and heads must be resolved. Errors: SettingError of kind shape or
/// usage.
void read_sizes(Plan& plan, const Settings& settings, const OperandShapes& operands);

}  // namespace attn
