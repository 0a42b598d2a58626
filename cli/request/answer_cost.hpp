// What an answer of a batch costs: the text of its numbers, and memory.
#pragma once

#include <cstdint>

#include "cli/request/request.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

struct AnswerCost {
    std::uint64_t bytes;  ///< of its numbers' text, about
    double memory;        ///< bytes at the peak, that text included
};

/// What an answer of a batch costs, which is in memory as a whole before it is written.
AnswerCost answer_cost(const Request& request, const Plan& plan);

}  // namespace attn::cli
