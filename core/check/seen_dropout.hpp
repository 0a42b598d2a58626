// Dropout that another program applied and the question does not have.
#pragma once

#include <optional>
#include <vector>

#include "core/check/problem.hpp"
#include "core/check/their_array.hpp"

namespace attn {

/// The question with the dropout mask that their attention_weights show, weights that are 0 while
/// the question's are not, and with the factor of the others. Nothing if there are none, if the
/// question has dropout itself, or if the array does not hold all weights.
std::optional<Problem> with_seen_dropout(const Problem& problem,
                                         const std::vector<TheirArray>& arrays);

}  // namespace attn
