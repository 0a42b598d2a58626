// The steps of one query that a result does not contain but that follow from its contents.
#pragma once

#include <string_view>
#include <vector>

#include "cli/explain/explanation.hpp"
#include "core/base/tensor.hpp"
#include "core/operator/score_steps.hpp"

namespace attn::cli {

/// Adds arrays that follow from the settings of one query: which keys a rule allows. Adds those
/// that the page computes: steps between scores, and the softmax's maximum, exponentials and sum.
/// Determines whether the scores show an additive mask; two of them appear as one, because they
/// cannot be separated. Determines whether zero weights can be distinguished from masked keys.
/// Errors: kind input if the weights are not the softmax of the scores.
void add_steps(ExplanationSource& source);

/// The possible error of a file's numbers: a unit in the last decimal, or 0 if they were not
/// rounded.
double last_digit(const ExplanationSource& source);

/// Applies a step of the scores to the row of one batch entry and head, in the result's dtype.
std::vector<double> stepped(const ExplanationSource& source, const StepUse& use,
                            const double* scores, std::size_t row);

/// The array with this name, or null.
const Array<double>* array_of(const ExplanationSource& source, std::string_view name);

}  // namespace attn::cli
