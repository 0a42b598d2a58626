// Bounds of a formula over a block of queries and keys.
#pragma once

#include <cmath>

#include "core/base/positions.hpp"
#include "core/expression/expression.hpp"

namespace attn {

/// The values of a formula's variables of sizes.
struct ExpressionSizes {
    std::size_t batch, heads, q_len, kv_len;
    PositionOffset offset;    ///< from a query's index to its position among the keys
    bool in_float32 = false;  ///< real numbers are rounded to float32
};

/// What a score or a weight may be, and how far each real number may be rounded, relative to it.
struct UncertainValue {
    NumberRange value;
    double unit = 0;
};

/// For the nodes of a formula, in their order. `block` is of queries and keys. Without `given`
/// scores and weights may be anything.
std::vector<NumberRange> ranges_of(const Expression& expression, const ExpressionSizes& sizes,
                                   const Block& block,
                                   const UncertainValue& given = {{-HUGE_VAL, HUGE_VAL, true}});

}  // namespace attn
