// Widths, heads and biases of a layer's projections.
#pragma once

#include "core/plan/operand_shapes.hpp"
#include "core/plan/settings.hpp"

namespace attn {

/// Fills in the widths, heads and biases of a mode with projections, from the settings, the input
/// and given parameters. Errors: SettingError of kind usage or shape.
void resolve_widths(Settings& settings, const OperandShapes& operands);

}  // namespace attn
