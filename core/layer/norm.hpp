// The normalisation before a layer in published models.
#pragma once

#include <span>
#include <vector>

#include "core/base/names.hpp"

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

/// Normalises a row of d_in numbers in place. Sums are float64 and each number is rounded to T
/// once.
template <class T>
void normalise(const InputNorm& norm, std::span<T> row);

}  // namespace attn
