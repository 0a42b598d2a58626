// Widths, heads and biases of a layer's projections.
#pragma once

#include "core/plan/operand_shapes.hpp"
#include "core/plan/settings.hpp"

namespace attn {

/// Fills in the widths, heads and biases of a mode with projections, from the settings, the input
/// and given parameters. Errors: SettingError of kind usage or shape.
void resolve_widths(Settings& settings, const OperandShapes& operands);

/// Its part for given parameters (given_weights.cpp): fills in the settings that they fix, for an
/// input of d_in columns and keys and values made from d_context. Errors: SettingError of kind
/// usage or shape, if they do not match each other, the input, or a given setting.
void resolve_given_weights(Settings& settings, const WeightShapes& weights, std::size_t d_in,
                           std::size_t d_context);

}  // namespace attn
