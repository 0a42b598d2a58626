// One row's attention from its parts: each computed over some of the keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace attn {

/// A sink that adds nothing.
inline constexpr double no_sink = -std::numeric_limits<double>::infinity();

/// ln of the sum of e^score, given the sum of e^(score - shift); -Infinity if it is empty.
template <class T>
T logsumexp_of(double shift, double sum) {
    return sum == 0 ? -std::numeric_limits<T>::infinity() : static_cast<T>(shift + std::log(sum));
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
T merge(const KeySplits<T>& parts, double sink, std::span<double> buffer, T* context) {
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
    return logsumexp_of<T>(shift, sum);
}

}  // namespace attn
