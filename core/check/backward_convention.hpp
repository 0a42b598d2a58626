// In what a program's backward pass may differ from the derivative of its forward pass.
#pragma once

#include <compare>
#include <optional>

#include "core/operator/choices.hpp"

namespace attn {

/// Which heads of a group the gradient by their key head is of, which is their sum.
enum class GroupSum { all, first, last, mean };
/// What the softmax's backward pass subtracts: the sum of weights times their gradients.
enum class RowTerm { own, dropped, none };
/// What the weights are computed without that a backward pass takes.
enum class Forgotten { nothing, causal, masks, sink };
/// What a soft cap's gradients are multiplied by: 1 - tanh^2(x / c), 1, the same of the capped
/// score, or 1 less the square of the capped score.
enum class CapSlope { own, none, of_capped, unscaled };

/// In what a backward pass is not the derivative of its forward pass.
// NOLINTBEGIN(modernize-use-nullptr): a defaulted <=> compares with 0.
struct BackwardConvention {
    std::optional<Loss> loss;              ///< none: the gradient by context vectors is given
    double factor = 1;                     ///< of the gradient by context vectors
    int query_scale = 1, key_scale = 1;    ///< how often the scale multiplies their gradients
    int query_turns = -1, key_turns = -1;  ///< how often they are rotated
    GroupSum groups = GroupSum::all;
    RowTerm row_term = RowTerm::own;
    int dropout_factors = 1;                 ///< 1 / (1 - p) in gradients by weights
    bool drops = true, drops_values = true;  ///< in gradients by weights, and by values
    Forgotten forgets = Forgotten::nothing;
    bool keeps_sum = false;  ///< such weights are divided by the sum of the forward pass
    CapSlope cap = CapSlope::own;
    bool transposes_weights = false;
    bool averages_biases = false;  ///< over the tokens

    auto operator<=>(const BackwardConvention&) const = default;
};
// NOLINTEND(modernize-use-nullptr)

}  // namespace attn
