// Splitting and concatenating heads: packed columns, a heads axis, and arrays of any rank.
#pragma once

#include <algorithm>
#include <utility>

#include "core/base/tensor.hpp"
#include "core/plan/backend.hpp"
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
    if (is_dry_run()) return split;
    const T* from = x.data();
    for (std::size_t batch = 0; batch < x.shape(0); ++batch)
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t head = 0; head < heads; ++head, from += d)
                std::copy_n(from, d, &split(batch, head, row, 0));
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

/// Rows [first, first + count) of each of `matrices` matrices of `rows` rows of d elements.
template <class T>
void copy_rows(const T* from, std::size_t matrices, std::size_t rows, std::size_t d,
               std::size_t first, std::size_t count, T* to) {
    if (is_dry_run()) return;
    for (std::size_t matrix = 0; matrix < matrices; ++matrix)
        to = std::copy_n(from + (matrix * rows + first) * d, count * d, to);
}

/// Some rows of each head: (batch, heads, rows, d) to (batch, heads, count, d).
template <class T>
Tensor4<T> rows_of_heads(const Tensor4<T>& x, std::size_t first, std::size_t count) {
    Tensor4<T> picked = Tensor4<T>::from_shape({x.shape(0), x.shape(1), count, x.shape(3)});
    copy_rows(x.data(), x.shape(0) * x.shape(1), x.shape(2), x.shape(3), first, count,
              picked.data());
    return picked;
}

/// Some rows of each matrix: (batch, rows, d) to (batch, count, d).
template <class T>
Tensor3<T> rows_of_matrices(const Tensor3<T>& x, std::size_t first, std::size_t count) {
    Tensor3<T> picked = Tensor3<T>::from_shape({x.shape(0), count, x.shape(2)});
    copy_rows(x.data(), x.shape(0), x.shape(1), x.shape(2), first, count, picked.data());
    return picked;
}

/// (batch, heads, rows, d) to (batch, 1, rows, heads * d).
template <class T>
Tensor4<T> merge_heads(const Tensor4<T>& x) {
    const std::size_t rows = x.shape(2), d = x.shape(3), row = x.shape(1) * d;
    Tensor4<T> merged = Tensor4<T>::from_shape({x.shape(0), 1, rows, row});
    copy_heads<T>(x.data(), x.shape(), {merged.data(), rows * row, d, row});
    return merged;
}

/// Concatenates the rows of each head of `first` and `second`.
template <class T>
Tensor4<T> join_rows(const Tensor4<T>& first, const Tensor4<T>& second) {
    const std::size_t d = first.shape(3);
    Tensor4<T> joined = Tensor4<T>::from_shape(
        {first.shape(0), first.shape(1), first.shape(2) + second.shape(2), d});
    if (is_dry_run()) return joined;
    T* to = joined.data();
    for (std::size_t matrix = 0; matrix < first.shape(0) * first.shape(1); ++matrix)
        for (const Tensor4<T>* x : {&first, &second}) {
            const std::size_t size = x->shape(2) * d;
            to = std::copy_n(x->data() + matrix * size, size, to);
        }
    return joined;
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
