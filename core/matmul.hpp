// The reference path's one product: plain loops, sums in float64.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace attn {

/// One row of a product: sums[j] = sum_i row[i] * matrix[i, j], matrix being row-major
/// (sums.size() columns). The order of the additions is i = 0, 1, ..., whatever the machine.
template <class T>
void multiply_row(const T* row, std::size_t length, const T* matrix, std::vector<double>& sums) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t i = 0; i < length; ++i) {
        const double factor = row[i];
        const T* from = matrix + i * sums.size();
        for (std::size_t j = 0; j < sums.size(); ++j)
            sums[j] += factor * static_cast<double>(from[j]);
    }
}

}  // namespace attn
