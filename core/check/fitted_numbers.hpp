// Numbers of conventions that no list has, fitted to another program's arrays.
#pragma once

#include <vector>

#include "core/check/comparison.hpp"
#include "core/check/departures.hpp"

namespace attn {

/// One number that lets the question come nearest to the arrays, if nothing else differs.
struct FittedNumber {
    Convention convention;
    /// The shortest decimal within the number's uncertainty, then the number itself.
    std::vector<Alternative> alternatives;
};

/// Of the scale, the soft cap and the rotary base, where the question has them and the arrays have
/// enough numbers that depend on them. Whether they reproduce the arrays is not known.
std::vector<FittedNumber> fitted_numbers(const Comparison& comparison);

}  // namespace attn
