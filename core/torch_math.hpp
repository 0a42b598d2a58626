// PyTorch's float arithmetic where its order and rounding show in the printed digits: products,
// sums along a row and the exponential, as its x86-64 CPU kernels compute them.
//
// Measured: PyTorch 1.13 on x86-64 (AVX2 kernels, reference BLAS) gives the same bits for linear
// layers, scores, softmax and context over thousands of random shapes. Builds with MKL or on arm64
// add in another order and may differ in the last place.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace attn {

/// One row of a product: sums[j] = sum_i row[i] * matrix[i, j], matrix being row-major with
/// sums.size() columns. Every product and every sum is rounded to T, in the order i = 0, 1, ...
template <class T>
void multiply_row(const T* row, std::size_t length, const T* matrix, std::vector<T>& sums) {
    std::fill(sums.begin(), sums.end(), T{0});
    for (std::size_t i = 0; i < length; ++i) {
        const T factor = row[i];
        const T* from = matrix + i * sums.size();
        for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += factor * from[j];
    }
}

/// The sum of a row as vectors of 32 bytes add it up: element i goes to lane i mod lanes, then the
/// lanes are folded in halves. Rows shorter than a vector are added in order.
/// Source: aten/src/ATen/cpu/vec/functional_base.h, reduce_all.
template <class T>
T row_sum(const T* row, std::size_t length) {
    constexpr std::size_t lanes = 32 / sizeof(T);
    T lane[lanes] = {};
    const std::size_t used = length < lanes ? 1 : lanes;
    for (std::size_t i = 0; i < length; ++i) lane[i % used] += row[i];
    for (std::size_t half = lanes / 2; half != 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
    return lane[0];
}

inline double torch_exp(double x) {
    return std::exp(x);
}

/// e^x within one unit in the last place: x = q ln 2 + s, a polynomial of degree 7 in s, times 2^q.
/// 0 below -104, +Infinity above 100, so every float32 underflow and overflow lies inside.
/// Source: SLEEF's expf with error bound 1.0 ULP, which PyTorch's vector type calls.
inline float torch_exp(float x) {
    if (std::isnan(x)) return x;
    if (x < -104.0f) return 0.0f;
    if (x > 100.0f) return std::numeric_limits<float>::infinity();
    const float q = std::nearbyint(x * 1.4426950408889634f);
    float s = std::fma(q, -0.693145751953125f, x);
    s = std::fma(q, -1.428606765330187e-06f, s);
    float u = 0.00019852762f;
    for (float coefficient : {0.0013930436f, 0.008333361f, 0.041666485f, 0.16666667f, 0.5f})
        u = std::fma(u, s, coefficient);
    // As SLEEF scales: by two powers, since 2^q may lie outside float32. The first step is exact.
    const auto power = [](int exponent) { return std::bit_cast<float>((exponent + 127) << 23); };
    const int exponent = static_cast<int>(q), half = exponent / 2;
    return (1.0f + std::fma(s * s, u, s)) * power(half) * power(exponent - half);
}

}  // namespace attn
