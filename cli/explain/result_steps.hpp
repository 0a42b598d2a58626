// The steps of one query that a result does not say but that follow from what it says.
#pragma once

#include <string>
#include <vector>

#include "core/layer/result.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// Adds to the arrays of one query what settings alone decide (which keys a rule allows) and what
/// the page works out for itself (the softmax's maximum, exponentials and sum). Gives a key for
/// each additive mask that the scores show: at most one, since two cannot be told apart.
std::vector<std::string> add_steps(Result& result, const Plan& plan);

}  // namespace attn::cli
