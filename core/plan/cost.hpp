// What a question costs: the sizes of its answer, its arithmetic and its memory, from shapes alone.
#pragma once

#include <cstdint>

#include "core/layer/layer.hpp"
#include "core/plan/shapes.hpp"

namespace attn {

/// What a question costs, before it is computed.
struct Cost {
    Shapes shapes;  ///< as Result's
    /// Floating point operations of the projections, the scores and the mixing of the values, two a
    /// multiply-add; blocked keys are counted, biases and the softmax are not.
    double flops;
    double memory;          ///< bytes that core needs at its peak, about
    std::uint64_t numbers;  ///< in all emitted arrays
};

/// Settings must be resolved. `may_stream` is compute's.
Cost cost_of(const Settings& settings, const Operands& operands, bool may_stream = false);

/// Bytes that core needs at its peak, about; operands and emitted copies included.
struct MemoryNeed {
    double layer;  ///< parameters, and all that has a row a token
    double steps;  ///< all that has a number for each query and key
};

/// Takes sizes that no machine has room for. Settings must be resolved but for the memory check.
MemoryNeed memory_need(const Settings& settings, const Operands& operands, const Geometry& geometry,
                       bool may_stream);

}  // namespace attn
