// The cost of a question, from its plan alone: its arithmetic, and its memory by a dry run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plan/plan.hpp"

namespace attn {

struct Cost {
    /// Floating-point operations of the projections, the scores and the products with the values,
    /// two per multiply-add. Masked keys are counted, biases and the softmax are not.
    double flops = 0;
    std::uint64_t numbers = 0;  ///< elements of all recorded arrays

    double memory = 0;         ///< bytes of all arrays at the peak, operands included
    double operand_bytes = 0;  ///< before anything is computed
    double answer_memory = 0;  ///< still in use while the result is written
};

double flops_of(const Plan& plan);

/// Accepts sizes beyond any machine's memory.
Cost measure(const Plan& plan, std::size_t threads = 1);

/// Throws a SettingError if a question of this cost needs too much memory, at the key that takes
/// the larger part; see require_memory in core/base/memory.hpp.
void require_memory(const Plan& plan, const Cost& cost);

}  // namespace attn
