// The sizes of one question, from its operands.
#pragma once

#include "core/plan/plan.hpp"

namespace attn {

/// Whether a layer's result has a heads axis: multihead always, cross if heads are given.
bool has_heads_axis(const Settings& settings);

/// Fills in the plan's sizes and visible axes, and checks that the operands match each other and
/// the settings, whose widths and heads must be resolved. Errors: SettingError of kind shape or
/// usage.
void read_sizes(Plan& plan, const Settings& settings, const OperandShapes& operands);

}  // namespace attn
