// Bounds of a formula over a block of queries and keys.
#pragma once

#include "core/base/positions.hpp"
#include "core/expression/expression.hpp"

namespace attn {

/// What the variables of a formula stand for.
struct ExpressionSizes {
    std::size_t batch, heads, q_len, kv_len;
    PositionOffset offset;  ///< from a query's index to its position among the keys
    bool in_float32 = false;  ///< real numbers are rounded to float32
};

/// For the nodes of a formula without score and p, in their order; a formula that has them is
/// unbounded where it depends on them. `block` is of queries and keys.
std::vector<NumberRange> ranges_of(const Expression& expression, const ExpressionSizes& sizes,
                                   const Block& block);

}  // namespace attn
