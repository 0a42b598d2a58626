// What a computation gives: named arrays, and the parameters used.
#pragma once

#include <optional>
#include <vector>

#include "core/base/named_array.hpp"
#include "core/layer/weights.hpp"

namespace attn {

struct Result {
    std::vector<NamedArray> arrays;          ///< in the order of their computation
    std::optional<AnyLayerWeights> weights;  ///< that were used; empty without projections
};

}  // namespace attn
