// Which of a computation's conventions an array depends on.
#pragma once

#include <cstddef>
#include <string>

#include "core/check/problem.hpp"
#include "core/operator/arrays.hpp"

namespace attn {

/// Whether the conventions exclude keys; additive masks are read for -infinity.
bool excludes_keys(const Problem& problem, const Conventions& c);

/// Moves the stages of scores that do nothing to the end of their order, sorted. Returns how many
/// do something.
std::size_t move_idle_stages(const Problem& problem, Conventions& c, bool excludes);

/// A key that is equal for conventions only if the array's numbers are. They may be equal for
/// different keys.
std::string relevant_key(const Problem& problem, Conventions conventions, ArrayId array);

}  // namespace attn
