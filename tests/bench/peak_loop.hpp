// The loop behind peak.hpp, for any vector header.
#pragma once

#include "tests/bench/peak.hpp"

namespace attn::bench {
namespace {

/// Enough independent sums to hide the latency of each.
template <class V>
double multiply_add(std::size_t rounds) {
    constexpr std::size_t sums = 10;
    V sum[sums];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < sums; ++i) sum[i] = V::set(1.0f);
    const V a = V::set(0.999999f), b = V::set(1e-9f);
    for (std::size_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < sums; ++i) sum[i] = V::accumulate(sum[i], a, b);
    }
    float lanes[V::lanes];
#pragma GCC unroll 16
    for (std::size_t i = 1; i < sums; ++i) sum[0] = V::add(sum[0], sum[i]);
    sum[0].store(lanes);
    // The result goes into the answer, so that the loop is not left out.
    const double done = 2.0 * static_cast<double>(sums * V::lanes * rounds);
    return lanes[0] == 42.0f ? done + 1 : done;
}

}  // namespace
}  // namespace attn::bench
