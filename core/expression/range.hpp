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

/// A variable other than score and p, for one query and key; `query` is an index.
double value_of(Variable variable, const ExpressionSizes& sizes, std::size_t batch,
                std::size_t head, std::size_t query, std::size_t key);

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

/// Whether `holds(ranges)` for the ranges over all queries and keys of every batch entry and head
/// on which the formula depends.
template <class Holds>
bool holds_everywhere(const Expression& expression, const ExpressionSizes& sizes,
                      const Holds& holds) {
    const bool has_entries = sizes.offset.values().size() != 1 ||
                             (expression.uses() & bit_of(Variable::b)) != 0,
               has_heads = (expression.uses() & bit_of(Variable::h)) != 0;
    for (std::size_t b = 0; b < (has_entries ? sizes.batch : 1); ++b)
        for (std::size_t h = 0; h < (has_heads ? sizes.heads : 1); ++h)
            if (!holds(ranges_of(expression, sizes, {b, h, 0, sizes.q_len, 0, sizes.kv_len})))
                return false;
    return true;
}

}  // namespace attn
