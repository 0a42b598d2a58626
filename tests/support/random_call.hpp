// Questions for the operator, made from a seed: shapes, options and numbers.
#pragma once

#include <cmath>

#include "core/base/torch_random.hpp"
#include "core/operator/attention.hpp"

namespace attn::test {

template <class T>
Tensor4<T> random_tensor(std::array<std::size_t, 4> shape, double magnitude, std::uint64_t seed) {
    Tensor4<T> tensor = Tensor4<T>::from_shape(shape);
    TorchGenerator generator(seed);
    for (T& value : tensor) value = generator.uniform<T>(-magnitude, magnitude);
    return tensor;
}

struct CallShape {
    std::size_t batch = 1, heads = 1, kv_heads = 1, q_len = 1, kv_len = 1, d_k = 1, d_v = 1;
};

template <class T>
AttentionCall<T> plain_call(const CallShape& s, double magnitude = 1, std::uint64_t seed = 1) {
    AttentionCall<T> call;
    call.query = random_tensor<T>({s.batch, s.heads, s.q_len, s.d_k}, magnitude, seed);
    call.key = random_tensor<T>({s.batch, s.kv_heads, s.kv_len, s.d_k}, magnitude, seed + 1);
    call.value = random_tensor<T>({s.batch, s.kv_heads, s.kv_len, s.d_v}, 1, seed + 2);
    call.scale = 1.0 / std::sqrt(static_cast<double>(s.d_k));
    return call;
}

/// The same question in float64: its answer is what both float32 paths are measured by.
inline AttentionCall<double> widened(const AttentionCall<float>& call) {
    AttentionCall<double> wide;
    wide.query = Tensor4<double>(call.query);
    wide.key = Tensor4<double>(call.key);
    wide.value = Tensor4<double>(call.value);
    wide.scale = call.scale;
    wide.softcap = call.softcap;
    wide.alibi = call.alibi;
    wide.alibi_distance = call.alibi_distance;
    wide.biases = call.biases;
    wide.mask = call.mask;
    wide.sink = call.sink;
    wide.first_query = call.first_query;
    wide.offset = call.offset;
    wide.dropout = call.dropout;
    return wide;
}

}  // namespace attn::test
