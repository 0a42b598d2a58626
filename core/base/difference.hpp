// The difference of two arrays.
#pragma once

#include <optional>

#include "core/base/number_type.hpp"
#include "core/base/tensor.hpp"

namespace attn {

/// Elements are equal if |a - b| <= atol + rtol |b|, or, if `ulp` is given, if at most that many
/// units in the last place lie between them.
struct Tolerance {
    double atol = 0, rtol = 0;
    std::optional<std::uint64_t> ulp = {};
    bool equal_nan = false;
    NumberType type = NumberType::float32;  ///< whose units in the last place are counted
};

/// Numbers to compare: values, with the rounding errors of integers that float64 cannot hold.
struct ComparedArray {
    const Array<double>& values;
    const Array<double>* rounding_errors = nullptr;  ///< of the same size; null: all 0

    ComparedArray(const Array<double>& array, const Array<double>* errors = nullptr)
        : values(array), rounding_errors(errors) {}
};

/// Maxima and means are over the elements that are finite in both arrays.
struct Difference {
    double max_abs = 0, mean_abs = 0;
    double max_rel = 0;              ///< |a - b| / |b|; infinite where b is 0 and a is not
    std::uint64_t max_ulp = 0;       ///< numbers of the type from a to b; +0 and -0 are one number
    std::vector<std::size_t> worst;  ///< index of the largest |a - b|, or of a mismatch
    std::uint64_t nonfinite_mismatches = 0;  ///< NaN or infinity on one side, or of another kind
    std::uint64_t outside = 0;               ///< elements beyond the tolerance, mismatches included
};

/// The shapes must be equal except for leading axes of length 1; indices are those of `a`.
/// Differences of integers are exact, then rounded to float64.
Difference difference(const ComparedArray& a, const ComparedArray& b, const Tolerance& tolerance);

}  // namespace attn
