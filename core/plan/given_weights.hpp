// The settings that given parameters determine: widths, heads and biases.
#pragma once

#include "core/plan/operand_shapes.hpp"
#include "core/plan/settings.hpp"

namespace attn {

/// Fills in the settings that given weights fix, for an input of d_in columns and keys and values
/// made from d_context. Errors: SettingError of kind usage or shape, if the weights do not match
/// each other, the input, or a given setting.
void resolve_given_weights(Settings& settings, const WeightShapes& weights, std::size_t d_in,
                           std::size_t d_context);

}  // namespace attn
