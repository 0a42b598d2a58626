// How a program's backward pass may differ from the derivative of its forward pass.
#pragma once

#include <compare>
#include <optional>

#include "core/operator/choices.hpp"

namespace attn {

/// Which heads of a group the gradient of their key head sums.
enum class GroupSum { all, first, last, mean };
/// What the softmax's backward pass subtracts: the sum of weights times their gradients.
enum class RowTerm { own, dropped, none };
/// What the backward pass omits when it recomputes the weights.
enum class Forgotten { nothing, causal, masks, sink };
/// The factor of a soft cap's gradients: 1 - tanh^2(x / c), 1, 1 - tanh^2(capped / c), or
/// 1 - capped^2.
enum class CapSlope { own, none, of_capped, unscaled };

/// The defaults are the derivative of the forward pass.
// NOLINTBEGIN(modernize-use-nullptr): a defaulted <=> compares with 0.
struct BackwardConvention {
    std::optional<Loss> loss;              ///< none: the gradient of context vectors is given
    double factor = 1;                     ///< of the gradient of context vectors
    int query_scale = 1, key_scale = 1;    ///< how often the scale multiplies their gradients
    int query_turns = -1, key_turns = -1;  ///< how often they are rotated
    GroupSum groups = GroupSum::all;
    RowTerm row_term = RowTerm::own;
    int dropout_factors = 1;                 ///< 1 / (1 - p) in gradients of weights
    bool drops = true, drops_values = true;  ///< in gradients of weights, and of values
    Forgotten forgets = Forgotten::nothing;
    bool keeps_sum = false;  ///< such weights are divided by the sum of the forward pass
    CapSlope cap = CapSlope::own;
    bool transposes_weights = false;
    bool averages_biases = false;  ///< over the tokens

    auto operator<=>(const BackwardConvention&) const = default;
};
// NOLINTEND(modernize-use-nullptr)

}  // namespace attn
