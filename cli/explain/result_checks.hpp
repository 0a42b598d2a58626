// Whether the numbers of a result belong together, as far as a walk through one query shows them.
#pragma once

#include "cli/explain/walk.hpp"

namespace attn::cli {

/// Holds the weights of one query, its mask and its scores against each other and against the
/// rules of the settings; the steps have been added. Another kernel's sums and rounded numbers are
/// close enough. Errors: kind input.
void check_agreement(const WalkSource& source);

}  // namespace attn::cli
