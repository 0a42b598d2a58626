// The result of a computation: named arrays, and the parameters used.
#pragma once

#include "core/base/named_array.hpp"
#include "core/layer/weights.hpp"

namespace attn {

struct Result {
    std::vector<NamedArray> arrays;          ///< in the order of their computation
    std::optional<AnyLayerWeights> weights;  ///< the parameters used; empty without projections
    std::uint64_t draws = 0;                 ///< see draws_of()
};

}  // namespace attn
