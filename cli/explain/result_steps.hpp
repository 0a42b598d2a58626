// The steps of one query that a result does not say but that follow from what it says.
#pragma once

#include <string_view>
#include <vector>

#include "cli/explain/walk.hpp"
#include "core/base/tensor.hpp"
#include "core/operator/score_steps.hpp"

namespace attn::cli {

/// Adds to the arrays of one query what settings alone decide (which keys a rule allows) and what
/// the page works out for itself: steps between scores, and the softmax's maximum, exponentials
/// and sum. Finds whether the scores show an additive mask, as one, since two cannot be told
/// apart, and whether zeros among the weights can be told from blocked keys. Errors: kind input,
/// where the weights are not what the scores make.
void add_steps(WalkSource& source);

/// What numbers of a file may be off where they were rounded: the last digit's 1, or 0.
double last_digit(const WalkSource& source);

/// A step of the scores on one row, of batch entry and head, in the result's dtype.
std::vector<double> stepped(const WalkSource& source, const StepUse& use, const double* scores,
                            std::size_t row);

/// The array of this name, or null.
const Array<double>* array_of(const WalkSource& source, std::string_view name);

}  // namespace attn::cli
