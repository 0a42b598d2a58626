// The derivative of a formula by the variable that it starts from: again a formula.
#pragma once

#include "core/expression/expression.hpp"

namespace attn {

/// By score or p; 0 where the formula is constant along it, as floor is. Where branches meet it is
/// what PyTorch has: half of each for min and max of equal numbers, 0 for abs at 0. A branch that a
/// condition does not take has no part, also if its derivative is not finite there.
Expression derivative(const Expression& expression);

}  // namespace attn
