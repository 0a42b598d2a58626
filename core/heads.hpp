// Heads in and out: packed columns, the heads' own axis, and arrays of any rank.
#pragma once

#include <algorithm>

#include <xtensor/xmanipulation.hpp>

#include "core/geometry.hpp"
#include "core/tensor.hpp"

namespace attn {

/// A matrix or a batch of matrices as (batch, rows, columns) in T.
template <class T>
Tensor3<T> as_batch(const Array<double>& values) {
    const std::size_t rank = values.dimension();
    Tensor3<T> batch = Tensor3<T>::from_shape(
        {rank == 3 ? values.shape(0) : 1, values.shape(rank - 2), values.shape(rank - 1)});
    std::transform(values.begin(), values.end(), batch.begin(),
                   [](double value) { return static_cast<T>(value); });
    return batch;
}

/// (batch, rows, heads * d) to (batch, heads, rows, d).
template <class T>
Tensor4<T> split_heads(const Tensor3<T>& x, std::size_t heads) {
    const Tensor4<T> split =
        xt::reshape_view(x, {x.shape(0), x.shape(1), heads, x.shape(2) / heads});
    return xt::transpose(split, {0, 2, 1, 3});
}

/// (batch, heads, rows, d) to (batch, rows, heads * d).
template <class T>
Tensor3<T> join_heads(const Tensor4<T>& x) {
    const Tensor4<T> rows_first = xt::transpose(x, {0, 2, 1, 3});
    return xt::reshape_view(rows_first, {x.shape(0), x.shape(2), x.shape(1) * x.shape(3)});
}

/// An operand of sdpa, or cached keys or values, of any rank that the geometry admits, as
/// (batch, heads, len, d).
template <class T>
Tensor4<T> unpack(const Array<double>& values, const Geometry& g, std::size_t heads, bool packed) {
    if (packed) return split_heads(as_batch<T>(values), heads);
    const std::size_t rank = values.dimension();
    Tensor4<T> full =
        Tensor4<T>::from_shape({g.batch, heads, values.shape(rank - 2), values.shape(rank - 1)});
    std::transform(values.begin(), values.end(), full.begin(),
                   [](double value) { return static_cast<T>(value); });
    return full;
}

}  // namespace attn
