// Splitting and concatenating heads: packed columns, a heads axis, and arrays of any rank.
#pragma once

#include <algorithm>
#include <utility>

#include "core/base/layout.hpp"
#include "core/base/tensor.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// A matrix or a batch of matrices as (batch, rows, columns).
template <class T>
Tensor3<T> as_batch(Array<T> values) {
    const std::size_t rank = values.dimension();
    return {std::move(values),
            {rank == 3 ? values.shape(0) : 1, values.shape(rank - 2), values.shape(rank - 1)}};
}

/// (batch, rows, heads * d) to (batch, heads, rows, d).
template <class T>
Tensor4<T> split_heads(const Tensor3<T>& x, std::size_t heads) {
    const std::size_t rows = x.shape(1), d = x.shape(2) / heads;
    Tensor4<T> split = Tensor4<T>::from_shape({x.shape(0), heads, rows, d});
    copy_swapped(x.data(), {x.shape(0), rows, heads, d}, split.data());
    return split;
}

/// (batch, rows, d) to (batch, heads, rows, d), the same rows for every head.
template <class T>
Tensor4<T> copy_for_heads(const Tensor3<T>& x, std::size_t heads) {
    Tensor4<T> copies = Tensor4<T>::from_shape({x.shape(0), heads, x.shape(1), x.shape(2)});
    if (is_dry_run()) return copies;
    const std::size_t matrix = x.shape(1) * x.shape(2);
    T* to = copies.data();
    for (std::size_t batch = 0; batch < x.shape(0); ++batch)
        for (std::size_t head = 0; head < heads; ++head)
            to = std::copy_n(x.data() + batch * matrix, matrix, to);
    return copies;
}

/// (batch, heads, rows, d) to (batch, 1, rows, heads * d).
template <class T>
Tensor4<T> merge_heads(const Tensor4<T>& x) {
    Tensor4<T> merged =
        Tensor4<T>::from_shape({x.shape(0), 1, x.shape(2), x.shape(1) * x.shape(3)});
    copy_swapped(x.data(), x.shape(), merged.data());
    return merged;
}

/// An operand of sdpa, or cached keys or values, of any rank that the plan admits, as
/// (batch, heads, len, d).
template <class T>
Tensor4<T> unpack(Array<T> values, const Plan& plan, std::size_t heads, bool packed) {
    if (packed) return split_heads(as_batch(std::move(values)), heads);
    const std::size_t rank = values.dimension();
    return {std::move(values), {plan.batch, heads, values.shape(rank - 2), values.shape(rank - 1)}};
}

}  // namespace attn
