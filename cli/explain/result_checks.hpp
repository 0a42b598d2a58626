// Checks whether the numbers of a result agree, as far as an explanation of one query shows them.
#pragma once

#include "cli/explain/explanation.hpp"

namespace attn::cli {

/// Checks the weights of one query, its mask and its scores against each other and against the
/// rules of the settings. Requires that `add_steps` has run. Tolerates rounded numbers and the
/// summation order of another kernel. Errors: kind input.
void check_agreement(const ExplanationSource& source);

}  // namespace attn::cli
