// PyTorch's float arithmetic whose order and rounding affect the printed digits: products, and the
// exponentials of a softmax and their sum, as its x86-64 CPU kernels compute them.
//
// Measured: the softmax has the bits of PyTorch 2.13 with ATEN_CPU_CAPABILITY=avx2 and of 1.13, in
// float32 and in float64, for rows of 1 to 20000 keys of every magnitude
// (tests/core/torch_bits_test.cpp for a part). Products have those of a reference BLAS; MKL adds in
// an order that it chooses by shape and processor.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/number_type.hpp"

namespace attn {

/// One row of a product: sums[j] = sum_i row[i] * matrix[i, j], matrix being row-major with
/// `columns` columns. Every product and every sum is rounded to T, in the order i = 0, 1, ..., and
/// every sum to `sum_type`.
template <class T>
void multiply_row(const T* row, std::size_t length, const T* matrix, std::size_t columns, T* sums,
                  NumberType sum_type = NumberType::float32) {
    std::fill_n(sums, columns, T{0});
    for (std::size_t i = 0; i < length; ++i) {
        const T factor = row[i];
        const T* from = matrix + i * columns;
        for (std::size_t j = 0; j < columns; ++j) sums[j] += factor * from[j];
        if (is_rounded(sum_type)) round_all(std::span(sums, columns), sum_type);
    }
}

/// The denominator of a softmax. Vectors of 32 bytes are added up, so that element i goes to lane
/// i mod lanes; the eight lanes of float32 are then folded in halves, the four of float64 added in
/// order. Rows shorter than a vector are added in order.
/// Source: aten/src/ATen/cpu/vec/functional_base.h, reduce_all.
template <class T>
T softmax_sum(const T* row, std::size_t length) {
    constexpr std::size_t lanes = 32 / sizeof(T);
    T lane[lanes] = {};
    const std::size_t used = length < lanes ? 1 : lanes;
    for (std::size_t i = 0; i < length; ++i) lane[i % used] += row[i];
    if constexpr (std::is_same_v<T, float>) {
        for (std::size_t half = lanes / 2; half != 0; half /= 2)
            for (std::size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
    } else {
        for (std::size_t i = 1; i < lanes; ++i) lane[0] += lane[i];
    }
    return lane[0];
}

/// x 2^exponent by two factors, since 2^exponent may be out of T's range. The first step is exact.
template <class T, class Bits>
T times_power_of_two(T x, int exponent) {
    constexpr int bias = std::numeric_limits<T>::max_exponent - 1;
    constexpr int mantissa = std::numeric_limits<T>::digits - 1;
    const auto power = [](int e) {
        return std::bit_cast<T>(static_cast<Bits>(e + bias) << mantissa);
    };
    const int half = exponent / 2;
    return x * power(half) * power(exponent - half);
}

/// e^x within one unit in the last place: x = q ln 2 + s, a polynomial in s, times 2^q. 0 below
/// -1000, +Infinity where e^x is more than the largest float64. Source: SLEEF's exp with error
/// bound 1.0 ULP, which PyTorch's vector type calls; its order of evaluation, pairs of pairs,
/// affects the last bit.
[[gnu::always_inline]] inline double torch_exp(double x) {
    if (std::isnan(x)) return x;
    if (x < -1000.0) return 0.0;
    if (x > 0x1.62e42fefa39efp+9) return std::numeric_limits<double>::infinity();
    const double q = std::nearbyint(x * 1.4426950408889634);
    double s = std::fma(q, -0.69314718055966295651, x);
    s = std::fma(q, -0.28235290563031577123e-12, s);
    const double s2 = s * s, s4 = s2 * s2, s8 = s4 * s4;
    const double c11_10 = std::fma(s, 0.2081276378237164457e-8, 0.2511210703042288022e-7);
    const double c9_8 = std::fma(s, 0.2755762628169491192e-6, 0.2755723402025388239e-5);
    const double c7_6 = std::fma(s, 0.2480158687479686264e-4, 0.1984126989855865850e-3);
    const double c5_4 = std::fma(s, 0.1388888888914497797e-2, 0.8333333333314938210e-2);
    const double c3_2 = std::fma(s, 0.4166666666666602598e-1, 0.1666666666666669072e+0);
    double u =
        std::fma(s8, c11_10, std::fma(s4, std::fma(s2, c9_8, c7_6), std::fma(s2, c5_4, c3_2)));
    for (double coefficient : {0.5, 1.0, 1.0}) u = std::fma(u, s, coefficient);
    return times_power_of_two<double, std::uint64_t>(u, static_cast<int>(q));
}

/// e^x within one unit in the last place: x = q ln 2 + s, a polynomial of degree 7 in s, times 2^q.
/// 0 below -104, +Infinity above 100, so all of float32's underflow and overflow is covered.
/// Source: SLEEF's expf with error bound 1.0 ULP, which PyTorch's vector type calls.
[[gnu::always_inline]] inline float torch_exp(float x) {
    if (std::isnan(x)) return x;
    if (x < -104.0f) return 0.0f;
    if (x > 100.0f) return std::numeric_limits<float>::infinity();
    const float q = std::nearbyint(x * 1.4426950408889634f);
    float s = std::fma(q, -0.693145751953125f, x);
    s = std::fma(q, -1.428606765330187e-06f, s);
    float u = 0.00019852762f;
    for (float coefficient : {0.0013930436f, 0.008333361f, 0.041666485f, 0.16666667f, 0.5f})
        u = std::fma(u, s, coefficient);
    return times_power_of_two<float, std::uint32_t>(1.0f + std::fma(s * s, u, s),
                                                    static_cast<int>(q));
}

/// powers[i] = torch_exp(scores[i] - shift), with the processor's own fused multiply-add where it
/// has one; the bits are the same without.
template <class T>
void exponentials(const T* scores, std::size_t length, T shift, T* powers);

// tensor.sum along one axis of a contiguous array, which adds in a different order than the
// softmax. Measured: the bits of PyTorch 2.13 on x86-64, with AVX2 and with AVX-512. Source:
// aten/src/ATen/native/cpu/SumKernel.cpp.

/// The number of elements in a vector of 32 bytes.
template <class T>
inline constexpr std::size_t vector_lanes = 32 / sizeof(T);

/// Sums of neighbouring columns.
template <class T>
using ColumnSums = std::array<T, vector_lanes<T>>;

template <class T>
void add_columns(ColumnSums<T>& sums, const T* row, std::size_t columns) {
    for (std::size_t j = 0; j < columns; ++j) sums[j] += row[j];
}

/// Columns of `rows` rows that are `stride` apart. 2^p rows are added in order, then 2^p of such
/// sums, and so on for four levels, so that numbers of like size are added; p is 4 up to 2^19 rows.
template <class T>
ColumnSums<T> cascade_sum(const T* x, std::size_t rows, std::size_t stride, std::size_t columns) {
    constexpr std::size_t levels = 4;
    const auto log2_rows =
        static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(rows, 1) - 1));
    const std::size_t p = std::max<std::size_t>(4, log2_rows / levels);
    std::array<ColumnSums<T>, levels> sums{};
    for (std::size_t i = 0; i < rows;) {
        add_columns(sums[0], x + i * stride, columns);
        ++i;
        for (std::size_t level = 1; level < levels && i % (std::size_t{1} << (level * p)) == 0;
             ++level) {
            add_columns(sums[level], sums[level - 1].data(), columns);
            sums[level - 1] = {};
        }
    }
    for (std::size_t level = 1; level < levels; ++level)
        add_columns(sums[0], sums[level].data(), columns);
    return sums[0];
}

/// The same with four sums that take the rows in turn; remaining rows go to the first.
template <class T>
ColumnSums<T> interleaved_sum(const T* x, std::size_t rows, std::size_t stride,
                              std::size_t columns) {
    constexpr std::size_t turns = 4;
    ColumnSums<T> sums = cascade_sum(x, rows / turns, turns * stride, columns);
    for (std::size_t i = rows / turns * turns; i < rows; ++i)
        add_columns(sums, x + i * stride, columns);
    for (std::size_t turn = 1; turn < turns; ++turn)
        add_columns(sums,
                    cascade_sum(x + turn * stride, rows / turns, turns * stride, columns).data(),
                    columns);
    return sums;
}

/// x.sum(dim=-1) of one row: the row's vectors are added as rows, then the remainder and the lanes
/// are added in order.
template <class T>
T tensor_sum(const T* row, std::size_t length) {
    const std::size_t lanes = length < vector_lanes<T> ? 1 : vector_lanes<T>;
    const std::size_t vectors = length / lanes;
    const ColumnSums<T> sums = interleaved_sum(row, vectors, lanes, lanes);
    T total{0};
    for (std::size_t i = vectors * lanes; i < length; ++i) total += row[i];
    for (std::size_t i = 0; i < lanes; ++i) total += sums[i];
    return total;
}

/// x.sum(dim=0) of (rows, columns). Columns are taken in whole blocks of four vectors, or of four
/// columns if they do not fill a vector, the rest individually; PyTorch treats a single column as a
/// row.
template <class T>
void sum_over_rows(const T* x, std::size_t rows, std::size_t columns, T* sums) {
    if (columns == 1) {
        *sums = tensor_sum(x, rows);
        return;
    }
    constexpr std::size_t lanes = vector_lanes<T>;
    const std::size_t block = columns < lanes ? 4 : 4 * lanes;
    const std::size_t in_blocks = columns / block * block;
    for (std::size_t j = 0, count = 0; j < columns; j += count) {
        const bool whole = j < in_blocks;
        count = std::min(lanes, (whole ? in_blocks : columns) - j);
        const ColumnSums<T> part = whole ? cascade_sum(x + j, rows, columns, count)
                                         : interleaved_sum(x + j, rows, columns, count);
        std::copy_n(part.begin(), count, sums + j);
    }
}

}  // namespace attn
