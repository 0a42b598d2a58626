// How outputs are made of queries, keys and values, one row each: the backends that compute it, the
// arrays that only it has, and its arithmetic.
#pragma once

#include <span>

#include "core/operator/arrays.hpp"
#include "core/plan/backend.hpp"
#include "core/plan/modes.hpp"

namespace attn {

struct MechanismRow {
    Mechanism mechanism;
    needs::Need need;                           ///< of the arrays that only this mechanism has
    std::span<const Backend> (*backends)();     ///< of the same names, in the same order, for each
    double (*multiply_adds)(const Plan& plan);  ///< all heads, without projections
};

const MechanismRow& row_of(Mechanism mechanism);

}  // namespace attn
