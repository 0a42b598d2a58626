// One row's attention from its parts: each computed over some of the keys.
#pragma once

#include "core/base/number_type.hpp"
#include "core/operator/attention.hpp"

namespace attn {

/// A sink that adds nothing.
inline constexpr double no_sink = -std::numeric_limits<double>::infinity();

/// ln of the sum of e^score, given the sum of e^(score - shift); -Infinity if it is empty.
inline double logsumexp_of(double shift, double sum) {
    return sum == 0 ? -std::numeric_limits<double>::infinity() : shift + std::log(sum);
}

/// A row's sum of e^score as e^shift times `sum`. A row whose scores all overflowed to -Infinity
/// has that shift and the sum NaN, and its context is NaN; it adds nothing to other keys' sums.
struct RowSum {
    double shift = -std::numeric_limits<double>::infinity(), sum = 0;

    bool adds_nothing() const {
        return sum == 0 || shift == -std::numeric_limits<double>::infinity();
    }
    /// NaN if the scores overflowed.
    double logsumexp() const { return logsumexp_of(shift, sum); }
    /// The logsumexp of a part, to which others are added: -Infinity if it adds nothing.
    double logsumexp_of_part() const {
        return adds_nothing() ? -std::numeric_limits<double>::infinity() : logsumexp();
    }
};

/// Parts of a row over some of its keys each: their contexts, (parts, d_v), as if each were the
/// whole row, and their sums of e^(score - shift).
template <class T>
struct KeySplits {
    const T* contexts;
    std::span<const T> shifts, sums;
};

/// Writes the context of the whole row, d_v elements; returns the row's sum. `buffer` has d_v
/// elements.
template <class T>
RowSum merge(const KeySplits<T>& parts, double sink, std::span<double> buffer, T* context) {
    const auto sum_of = [&](std::size_t part) {
        return RowSum{static_cast<double>(parts.shifts[part]),
                      static_cast<double>(parts.sums[part])};
    };
    RowSum row{sink, sink == no_sink ? 0.0 : 1.0};
    double overflowed = 0;  // or NaN
    for (std::size_t part = 0; part < parts.sums.size(); ++part) {
        const RowSum added = sum_of(part);
        if (added.adds_nothing())
            overflowed += added.sum;
        else
            row.shift = std::max(row.shift, added.shift);
    }
    row.sum = sink == no_sink ? 0 : std::exp(sink - row.shift);
    std::fill(buffer.begin(), buffer.end(), 0.0);
    const T* of_part = parts.contexts;
    for (std::size_t part = 0; part < parts.sums.size(); ++part, of_part += buffer.size()) {
        const RowSum added = sum_of(part);
        if (added.adds_nothing()) continue;
        const double part_sum = added.sum * std::exp(added.shift - row.shift);
        row.sum += part_sum;
        for (std::size_t c = 0; c < buffer.size(); ++c)
            buffer[c] += part_sum * static_cast<double>(of_part[c]);
    }
    if (row.sum == 0) row.sum = overflowed;
    for (std::size_t c = 0; c < buffer.size(); ++c)
        context[c] = static_cast<T>(row.sum == 0 ? 0 : buffer[c] / row.sum);
    return row;
}

/// Rows joined from parts that are added one by one, in any order, in double.
class MergedRows {
public:
    MergedRows(std::size_t rows, std::size_t d_v)
        : d_v_(d_v), contexts_(rows * d_v, 0.0), sums_(rows) {}

    /// Adds a part of one row over some of its keys: its context, d_v elements, as if these were
    /// all keys, and its logsumexp_of_part().
    template <class T>
    void add(std::size_t row, const T* context, double logsumexp) {
        if (logsumexp == -std::numeric_limits<double>::infinity()) {
            // 0 without any key, NaN of scores that overflowed
            if (sums_[row].adds_nothing()) sums_[row].sum += static_cast<double>(context[0]);
            return;
        }
        const double weight = raise_shift(row, logsumexp);
        double* const to = contexts_.data() + row * d_v_;
        for (std::size_t c = 0; c < d_v_; ++c) to[c] += weight * static_cast<double>(context[c]);
    }

    /// Adds sinks, one for all heads or one each, to the denominators alone, rounded to the dtype
    /// as in one computation. Rows are (batch, heads, queries); without sinks nothing changes.
    void add_sinks(const std::vector<double>& sink, NumberType dtype, std::size_t heads,
                   std::size_t queries) {
        if (sink.empty()) return;
        for (std::size_t row = 0; row < sums_.size(); ++row)
            raise_shift(row, row_of(dtype).round(sink_of(sink, row / queries % heads)));
    }

    /// Writes the context, d_v elements, which is 0 without any key; returns the row's sum.
    template <class T>
    RowSum finish(std::size_t row, T* context) const {
        const double sum = sums_[row].sum;
        const double* const from = contexts_.data() + row * d_v_;
        for (std::size_t c = 0; c < d_v_; ++c)
            context[c] = static_cast<T>(sum == 0 ? 0 : from[c] / sum);
        return sums_[row];
    }

private:
    /// Adds e^(logsumexp - shift) to the row's sum and returns it.
    double raise_shift(std::size_t row, double logsumexp) {
        RowSum& sum = sums_[row];
        if (sum.adds_nothing()) {
            sum = {logsumexp, 0};
        } else if (!(logsumexp <= sum.shift)) {  // NaN raises it too
            const double factor = std::exp(sum.shift - logsumexp);
            sum.shift = logsumexp;
            sum.sum *= factor;
            for (std::size_t c = 0; c < d_v_; ++c) contexts_[row * d_v_ + c] *= factor;
        }
        const double weight = std::exp(logsumexp - sum.shift);
        sum.sum += weight;
        return weight;
    }

    std::size_t d_v_;
    std::vector<double> contexts_;  // (rows, d_v), times e^shift the weighted sums of values
    std::vector<RowSum> sums_;
};

}  // namespace attn
