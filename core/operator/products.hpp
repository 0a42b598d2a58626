// Products of the operator's tensors in plain loops.
#pragma once

#include "core/base/torch_math.hpp"

namespace attn {

/// (batch, heads, m, k) times (batch, kv_heads, k, n): a group of heads shares each matrix of b.
template <class T>
Tensor4<T> matmul(const Tensor4<T>& a, const Tensor4<T>& b, NumberType sum_type) {
    const std::size_t m = a.shape(2), k = a.shape(3), n = b.shape(3);
    const std::size_t group = a.shape(1) / b.shape(1);
    Tensor4<T> product = Tensor4<T>::from_shape({a.shape(0), a.shape(1), m, n});
    for_each_index(a.shape(0) * a.shape(1) * m, [&](std::size_t row) {
        multiply_row(a.data() + row * k, k, b.data() + row / m / group * k * n, n,
                     product.data() + row * n, sum_type);
    });
    return product;
}

/// (batch, heads, m, n) to (batch, heads, n, m).
template <class T>
Tensor4<T> transposed(const Tensor4<T>& x) {
    const std::size_t rows = x.shape(2), columns = x.shape(3);
    Tensor4<T> turned = Tensor4<T>::from_shape({x.shape(0), x.shape(1), columns, rows});
    for_each_index(x.shape(0) * x.shape(1), [&](std::size_t matrix) {
        const T* from = x.data() + matrix * rows * columns;
        T* const to = turned.data() + matrix * rows * columns;
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t column = 0; column < columns; ++column)
                to[column * rows + row] = *from++;
    });
    return turned;
}

/// Weights times values, (batch, heads, q_len, d_v), a group of heads sharing each matrix of
/// values. Masked keys are skipped: their weight is 0, but 0 times NaN would be NaN.
template <class T>
Tensor4<T> multiply_values(const Tensor4<T>& weights, const Tensor4<T>& mask,
                           const Tensor4<T>& values, NumberType sum_type) {
    const std::size_t rows = weights.shape(2), keys = weights.shape(3), d_v = values.shape(3);
    const std::size_t group = weights.shape(1) / values.shape(1);
    Tensor4<T> context = Tensor4<T>::from_shape({weights.shape(0), weights.shape(1), rows, d_v});
    context.fill(T{0});
    for_each_index(weights.shape(0) * weights.shape(1) * rows, [&](std::size_t row) {
        for (std::size_t k = 0; k < keys; ++k) {
            if (mask.data()[row * keys + k] == T{0}) continue;
            const T weight = weights.data()[row * keys + k];
            const T* value = values.data() + (row / rows / group * keys + k) * d_v;
            const std::span sums(context.data() + row * d_v, d_v);
            for (std::size_t j = 0; j < d_v; ++j) sums[j] += weight * value[j];
            if (is_rounded(sum_type)) round_all(sums, sum_type);
        }
    });
    return context;
}

}  // namespace attn
