// Which of a computation's conventions an array depends on.
#pragma once

#include <string>

#include "core/check/problem.hpp"
#include "core/operator/arrays.hpp"

namespace attn {

/// A key that is equal for conventions only if the array's numbers are. They may be equal for
/// different keys.
std::string relevant_key(const Problem& problem, Conventions conventions, ArrayId array);

}  // namespace attn
