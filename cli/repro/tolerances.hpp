// How far two programs that compute the same question may differ by rounding.
#pragma once

#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/check/problem.hpp"

namespace attn::cli {

/// For each element of (batch, heads, rows, columns), the largest difference between two
/// computations of the problem in its plan's type: twice the bound of `attn check`, plus the
/// smallest normal number, because programs may flush those below it to 0. Infinity where a
/// computation may overflow.
std::vector<double> tolerances_of(const Problem& problem, ArrayId array, ThreadPool& pool);

}  // namespace attn::cli
