// The result of a computation: named arrays, and the parameters used.
#pragma once

#include "core/layer/weights.hpp"
#include "core/operator/recorder.hpp"

namespace attn {

struct Result {
    std::vector<NamedArray> arrays;          ///< in the order of their computation
    std::optional<AnyLayerWeights> weights;  ///< the parameters used; empty without projections
    std::uint64_t draws = 0;                 ///< see Draws::end
    std::vector<Overflow> overflows = {};    ///< of steps, named arrays or not
};

}  // namespace attn
