// The derivative of a formula with respect to its variable, as a formula.
#pragma once

#include "core/expression/expression.hpp"

namespace attn {

/// With respect to score or p; 0 where the formula is locally constant, as floor is. At ties and
/// kinks as in PyTorch: half to each side for min and max, 0 for abs at 0. Only the branch that a
/// condition takes counts, even if the derivative of the other is not finite.
Expression derivative(const Expression& expression);

}  // namespace attn
