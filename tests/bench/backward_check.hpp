// The gradients of plain attention, checked without computing them again.
#pragma once

#include <cmath>

#include "core/operator/backward.hpp"

namespace attn::bench {

inline double dot(const Tensor4<float>& a, const Tensor4<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += static_cast<double>(a.data()[i]) * static_cast<double>(b.data()[i]);
    return sum;
}

/// How far apart, for each query, what must be equal is: the sums of the values' gradients and of
/// the context's, as weights sum to 1, and the products of queries and of keys with their
/// gradients.
inline double gradient_error(const AttentionCall<float>& call, const Tensor4<float>& grad_context,
                             const AttentionGradients<float>& got) {
    double sums = 0;
    for (float x : grad_context) sums += static_cast<double>(x);
    for (float x : got.value) sums -= static_cast<double>(x);
    const double products = dot(call.query, got.query) - dot(call.key, got.key);
    return (std::abs(sums) + std::abs(products)) / static_cast<double>(call.query.shape(2));
}

}  // namespace attn::bench
