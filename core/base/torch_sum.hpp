// PyTorch's tensor.sum along one axis of a contiguous array, which adds in a different order than
// its softmax.
//
// Measured: the bits of PyTorch 2.13 on x86-64, with AVX2 and with AVX-512.
// Source: aten/src/ATen/native/cpu/SumKernel.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace attn {

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
