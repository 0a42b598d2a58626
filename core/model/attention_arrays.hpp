// Masks, biases and weights of attention that is not the usual one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/model/block.hpp"
#include "core/model/products.hpp"

namespace attn {

/// 1 where a key may be attended to, (q_len, kv_len): any of the first `before` keys, which are the
/// encoder's, and own ones within the window. Empty without a window.
Array<double> joined_mask(const AttentionPart& part, std::size_t past, std::size_t q_len,
                          std::size_t kv_len, std::size_t before);

/// The first `before` keys of (heads, q_len, kv_len), and the others.
template <class T>
std::pair<Array<T>, Array<T>> parted(const Array<T>& weights, std::size_t before);

/// Replaces the weights of each head by the mean of all, for the chosen heads, or all.
template <class T>
void average(const std::vector<std::uint64_t>& chosen, Array<T>& weights);

/// Multiplies the rows of the bias of each head by the gates of x, (1, tokens, heads * d).
template <class T>
void gate_bias(const Compute& compute, const AttentionPart& part, const Tensor3<T>& x,
               Array<double>& bias);

}  // namespace attn
