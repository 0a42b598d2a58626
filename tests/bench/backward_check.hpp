// The gradients of plain attention, checked without computing all of them in float64.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/operator/backward.hpp"

namespace attn::bench {

template <class Row>
double dot(const Row* a, const Row* b, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

/// The largest error of the last head's gradient by query `q`, against plain loops in float64.
inline double query_error(const AttentionCall<float>& call, const Tensor4<float>& grad_context,
                          const Tensor4<float>& got, std::size_t q) {
    const std::size_t h = call.query.shape(1) - 1, keys = call.key.shape(2),
                      d = call.query.shape(3);
    std::vector<double> weight(keys), by_weight(keys), expected(d);
    double sum = 0, mean = 0;
    for (std::size_t k = 0; k < keys; ++k) {
        if (!call.mask.allows(0, h, q, k)) continue;
        weight[k] = std::exp(call.scale * dot(&call.query(0, h, q, 0), &call.key(0, h, k, 0), d));
        by_weight[k] = dot(&grad_context(0, h, q, 0), &call.value(0, h, k, 0), d);
        sum += weight[k];
        mean += weight[k] * by_weight[k];
    }
    for (std::size_t k = 0; k < keys; ++k)
        for (std::size_t i = 0; i < d; ++i)
            expected[i] += weight[k] / sum * (by_weight[k] - mean / sum) * call.scale *
                           static_cast<double>(call.key(0, h, k, i));
    double worst = 0;
    for (std::size_t i = 0; i < d; ++i)
        worst = std::max(worst, std::abs(expected[i] - static_cast<double>(got(0, h, q, i))));
    return worst;
}

/// Errors of a few rows of the queries' gradients, and of what must equal: the columns' sums of the
/// values' gradients and of the context's, as weights sum to 1, and the products of queries and of
/// keys with their gradients; both of one query's share.
inline double gradient_error(const AttentionCall<float>& call, const Tensor4<float>& grad_context,
                             const AttentionGradients<float>& got) {
    const std::size_t queries = call.query.shape(2), d = call.query.shape(3);
    double worst = 0;
    for (std::size_t q : {std::size_t{0}, queries / 3, queries - 1})
        worst = std::max(worst, query_error(call, grad_context, got.query, q));
    std::vector<double> column(d);
    for (std::size_t i = 0; i < grad_context.size(); ++i)
        column[i % d] += static_cast<double>(grad_context.data()[i]);
    for (std::size_t i = 0; i < got.value.size(); ++i)
        column[i % d] -= static_cast<double>(got.value.data()[i]);
    const auto rows = static_cast<double>(queries);
    for (double left : column) worst = std::max(worst, std::abs(left) / rows);
    const double apart = dot(call.query.data(), got.query.data(), call.query.size()) -
                         dot(call.key.data(), got.key.data(), call.key.size());
    return std::max(worst, std::abs(apart) / rows);
}

}  // namespace attn::bench
