// One row's attention from its parts: each computed over some of the keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/operator/softmax.hpp"

namespace attn {

/// A sink that adds nothing.
inline constexpr double no_sink = -std::numeric_limits<double>::infinity();

/// ln of the sum of e^score, given the sum of e^(score - shift); -Infinity if it is empty.
inline double logsumexp_of(double shift, double sum) {
    return sum == 0 ? -std::numeric_limits<double>::infinity() : shift + std::log(sum);
}

/// Parts of a row over some of its keys each: their contexts, (parts, d_v), as if each were the
/// whole row, and their sums of e^(score - shift).
template <class T>
struct KeySplits {
    const T* contexts;
    std::span<const T> shifts, sums;
};

/// Writes the context of the whole row, d_v elements; returns the row's logsumexp. `buffer` has d_v
/// elements.
template <class T>
double merge(const KeySplits<T>& parts, double sink, std::span<double> buffer, T* context) {
    double shift = sink;
    for (std::size_t part = 0; part < parts.sums.size(); ++part)
        if (parts.sums[part] != 0) shift = std::max(shift, static_cast<double>(parts.shifts[part]));
    double sum = sink == no_sink ? 0 : std::exp(sink - shift);
    std::fill(buffer.begin(), buffer.end(), 0.0);
    const T* of_part = parts.contexts;
    for (std::size_t part = 0; part < parts.sums.size(); ++part, of_part += buffer.size()) {
        if (parts.sums[part] == 0) continue;
        const double part_sum = static_cast<double>(parts.sums[part]) *
                                std::exp(static_cast<double>(parts.shifts[part]) - shift);
        sum += part_sum;
        for (std::size_t c = 0; c < buffer.size(); ++c)
            buffer[c] += part_sum * static_cast<double>(of_part[c]);
    }
    for (std::size_t c = 0; c < buffer.size(); ++c)
        context[c] = static_cast<T>(sum == 0 ? 0 : buffer[c] / sum);
    return logsumexp_of(shift, sum);
}

/// Rows joined from parts that are added one by one, in any order, in double.
class MergedRows {
public:
    MergedRows(std::size_t rows, std::size_t d_v)
        : d_v_(d_v), contexts_(rows * d_v, 0.0), sums_(rows, 0.0),
          shifts_(rows, -std::numeric_limits<double>::infinity()) {}

    /// Adds a part of one row over some of its keys: its context, d_v elements, as if these were
    /// all keys, and its logsumexp, -Infinity if it attends to none.
    template <class T>
    void add(std::size_t row, const T* context, double logsumexp) {
        if (logsumexp == -std::numeric_limits<double>::infinity()) return;
        const double weight = raise_shift(row, logsumexp);
        double* const to = contexts_.data() + row * d_v_;
        for (std::size_t c = 0; c < d_v_; ++c) to[c] += weight * static_cast<double>(context[c]);
    }

    /// Adds sinks, one for all heads or one each, to the denominators alone, rounded to T as in one
    /// computation. Rows are (batch, heads, queries); without sinks nothing changes.
    template <class T>
    void add_sinks(const std::vector<double>& sink, std::size_t heads, std::size_t queries) {
        if (sink.empty()) return;
        for (std::size_t row = 0; row < sums_.size(); ++row)
            raise_shift(row, static_cast<T>(sink_of(sink, row / queries % heads)));
    }

    /// Writes the context, d_v elements, which is 0 without any key; returns the logsumexp.
    template <class T>
    double finish(std::size_t row, T* context) const {
        const double sum = sums_[row];
        const double* const from = contexts_.data() + row * d_v_;
        for (std::size_t c = 0; c < d_v_; ++c)
            context[c] = static_cast<T>(sum == 0 ? 0 : from[c] / sum);
        return logsumexp_of(shifts_[row], sum);
    }

private:
    /// Adds e^(logsumexp - shift) to the row's sum and returns it.
    double raise_shift(std::size_t row, double logsumexp) {
        double& shift = shifts_[row];
        if (!(logsumexp <= shift)) {  // NaN raises it too
            const double factor = sums_[row] == 0 ? 0 : std::exp(shift - logsumexp);
            shift = logsumexp;
            sums_[row] *= factor;
            for (std::size_t c = 0; c < d_v_; ++c) contexts_[row * d_v_ + c] *= factor;
        }
        const double weight = std::exp(logsumexp - shift);
        sums_[row] += weight;
        return weight;
    }

    std::size_t d_v_;
    std::vector<double> contexts_;  // (rows, d_v), times e^shift the weighted sums of values
    std::vector<double> sums_, shifts_;
};

}  // namespace attn
