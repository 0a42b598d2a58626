// Rows computed in key splits, and their merge.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/base/memory.hpp"

namespace attn {

/// A sink that adds nothing.
inline constexpr double no_sink = -std::numeric_limits<double>::infinity();

/// ln of the sum of e^score, given the sum of e^(score - shift); -Infinity if it is empty.
template <class T>
T logsumexp_of(double shift, double sum) {
    return sum == 0 ? -std::numeric_limits<T>::infinity() : static_cast<T>(shift + std::log(sum));
}

/// Contexts (rows, parts, d_v), and the shift and sum of each, see kernels::Tile.
template <class T>
class KeySplits {
public:
    void reserve(std::size_t rows, std::size_t parts, std::size_t d_v) {
        parts_ = parts;
        d_v_ = d_v;
        contexts_.reserve(rows * parts * d_v);
        shifts_.reserve(rows * parts);
        sums_.reserve(rows * parts);
        context_.reserve(d_v);
    }

    T* context(std::size_t row, std::size_t part) {
        return contexts_.data() + (row * parts_ + part) * d_v_;
    }

    void set_sum(std::size_t row, std::size_t part, T shift, T sum) {
        shifts_.data()[row * parts_ + part] = shift;
        sums_.data()[row * parts_ + part] = sum;
    }

    /// Writes the context of the whole row, d_v elements; returns the row's logsumexp.
    T merge(std::size_t row, double sink, T* to) {
        const T* shifts = shifts_.data() + row * parts_;
        const T* sums = sums_.data() + row * parts_;
        double* whole = context_.data();
        double shift = sink;
        for (std::size_t part = 0; part < parts_; ++part)
            if (sums[part] != 0) shift = std::max(shift, static_cast<double>(shifts[part]));
        double sum = sink == no_sink ? 0 : std::exp(sink - shift);
        std::fill_n(whole, d_v_, 0.0);
        for (std::size_t part = 0; part < parts_; ++part) {
            if (sums[part] == 0) continue;
            const double part_sum = static_cast<double>(sums[part]) *
                                    std::exp(static_cast<double>(shifts[part]) - shift);
            sum += part_sum;
            const T* of_part = context(row, part);
            for (std::size_t c = 0; c < d_v_; ++c)
                whole[c] += part_sum * static_cast<double>(of_part[c]);
        }
        for (std::size_t c = 0; c < d_v_; ++c)
            to[c] = static_cast<T>(sum == 0 ? 0 : whole[c] / sum);
        return logsumexp_of<T>(shift, sum);
    }

private:
    std::size_t parts_ = 1, d_v_ = 0;
    AlignedArray<T> contexts_, shifts_, sums_;
    AlignedArray<double> context_;  // of the current row
};

}  // namespace attn
