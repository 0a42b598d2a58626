// Numbers of conventions that no list has, fitted to another program's arrays.
#pragma once

#include <vector>

#include "core/check/comparison.hpp"
#include "core/check/departures.hpp"

namespace attn {

/// Of the scale, the rotary base and the soft cap, where the question has them and the arrays have
/// enough numbers that depend on them: the one that lets the question come nearest to the arrays,
/// if nothing else differs. First the shortest decimal within its uncertainty, then the number
/// itself. Whether they reproduce the arrays is not known.
std::vector<Alternative> fitted_numbers(const Comparison& comparison);

}  // namespace attn
