// Norms of rows: before a layer, of heads, and in models.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "core/base/number_type.hpp"

namespace attn {

enum class NormForm { layer, rms, rms_plus_one };

inline constexpr Names<NormForm, 3> norm_form_names{
    {{NormForm::layer, "layer"}, {NormForm::rms, "rms"}, {NormForm::rms_plus_one, "rms-plus-one"}}};

/// Over one row x: (x - mean) / sqrt(variance + eps) * weight + bias, the variance without Bessel's
/// correction (Ba et al. 2016, as torch.nn.LayerNorm); as RMS norm x / sqrt(mean(x^2) + eps) *
/// weight (Zhang and Sennrich 2019). If a file stores weight - 1 (Gemma), this holds the sum.
struct InputNorm {
    bool is_rms = false;
    std::vector<double> weight, bias;  ///< (d_in) each; no bias in an RMS norm
    double eps = 0;
};

/// Rounds the parameters to the dtype. Those that a file stores less 1 are rounded by its type.
inline void round_norm(InputNorm& norm, NumberType dtype) {
    round_all(std::span(norm.weight), dtype);
    round_all(std::span(norm.bias), dtype);
}

/// What a norm does to a row before its parameters: (x - mean) * factor.
struct RowScale {
    double mean = 0, factor = 1;
};

/// Sums are float64. The mean is 0 in an RMS norm.
template <class T>
RowScale scale_of_row(std::span<const T> row, bool is_rms, double eps) {
    const auto count = static_cast<double>(row.size());
    double mean = 0, squares = 0;
    if (!is_rms) {
        for (const T x : row) mean += static_cast<double>(x);
        mean /= count;
    }
    for (const T x : row) {
        const double centred = static_cast<double>(x) - mean;
        squares += centred * centred;
    }
    return {mean, 1 / std::sqrt(squares / count + eps)};
}

/// Normalises a row of d_in numbers in place, each of which is rounded to T once.
template <class T>
void normalise(const InputNorm& norm, std::span<T> row) {
    const auto [mean, factor] = scale_of_row<T>(row, norm.is_rms, norm.eps);
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double shift = norm.bias.empty() ? 0.0 : norm.bias[i];
        row[i] =
            static_cast<T>((static_cast<double>(row[i]) - mean) * factor * norm.weight[i] + shift);
    }
}

/// The backward pass of normalise(): gradients of its result become those of `row`.
template <class T>
void normalise_back(const InputNorm& norm, std::span<const T> row, std::span<T> gradients) {
    const auto [mean, factor] = scale_of_row<T>(row, norm.is_rms, norm.eps);
    const auto count = static_cast<double>(row.size());
    double sum = 0, along_row = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double by_normed = static_cast<double>(gradients[i]) * norm.weight[i];
        sum += by_normed;
        along_row += by_normed * (static_cast<double>(row[i]) - mean) * factor;
    }
    if (norm.is_rms) sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double normed = (static_cast<double>(row[i]) - mean) * factor;
        gradients[i] = static_cast<T>(factor * (static_cast<double>(gradients[i]) * norm.weight[i] -
                                                (sum + normed * along_row) / count));
    }
}

/// What rows of to_unit_length() are multiplied by.
inline constexpr double unit_length_eps = 1e-6, least_length = 1e-12;
inline double unit_factor(double squares, bool is_recurrent) {
    return 1 / (is_recurrent ? std::sqrt(squares + unit_length_eps)
                             : std::max(std::sqrt(squares), least_length));
}

/// Divides each of these rows of d numbers by sqrt(sum of its squares + 1e-6), as Gated DeltaNet
/// does; without `is_recurrent` by its L2 norm, at least 1e-12, as torch.nn.functional.normalize.
template <class T>
void to_unit_length(T* row, std::size_t rows, std::size_t d, bool is_recurrent = true) {
    for_each_index(rows, [&](std::size_t at) {
        T* const x = row + at * d;
        double squares = 0;
        for (std::size_t i = 0; i < d; ++i)
            squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
        const double factor = unit_factor(squares, is_recurrent);
        for (std::size_t i = 0; i < d; ++i)
            x[i] = static_cast<T>(static_cast<double>(x[i]) * factor);
    });
}

/// Its backward pass: gradients of the results become those of the given rows.
template <class T>
void to_unit_length_back(const T* given, T* gradients, std::size_t rows, std::size_t d,
                         bool is_recurrent) {
    for_each_index(rows, [&](std::size_t at) {
        const T* const x = given + at * d;
        T* const by = gradients + at * d;
        double squares = 0, along = 0;
        for (std::size_t i = 0; i < d; ++i) {
            squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
            along += static_cast<double>(x[i]) * static_cast<double>(by[i]);
        }
        const double factor = unit_factor(squares, is_recurrent);
        // A row that is divided by the least length is multiplied by a constant.
        if (!is_recurrent && std::sqrt(squares) <= least_length) along = 0;
        for (std::size_t i = 0; i < d; ++i)
            by[i] = static_cast<T>(factor * (static_cast<double>(by[i]) -
                                             factor * factor * along * static_cast<double>(x[i])));
    });
}

}  // namespace attn
