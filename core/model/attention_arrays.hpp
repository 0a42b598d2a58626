// Masks, biases and weights of unusual kinds of attention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/model/block.hpp"
#include "core/model/products.hpp"
#include "core/model/run_block.hpp"

namespace attn {

/// The attention that `plan` computes; `prefix` is that of its arrays.
LayerAttention described(const AttentionPart& part, const Plan& plan, bool is_cross,
                         std::string prefix);

/// 1 where a query may attend to a key, (q_len, kv_len): the first `before` keys, which are the
/// encoder's, and the decoder's own keys within the window; of both, the valid ones (empty: all).
/// Empty if all keys are allowed.
Array<double> joined_mask(const AttentionPart& part, const std::vector<bool>& encoder,
                          const std::vector<bool>& own, std::size_t past, std::size_t q_len,
                          std::size_t kv_len, std::size_t before);

/// Splits (heads, q_len, kv_len) into the first `before` keys and the others.
template <class T>
std::pair<Array<T>, Array<T>> parted(const Array<T>& weights, std::size_t before);

/// (1, heads, rows, d) as (heads, rows, d).
template <class T>
Array<T> without_batch(Tensor4<T> x);

/// Records x, the queries or keys of a layer of `heads` heads: those of the chosen heads.
/// `rows`: the name of the axis of tokens. Errors: SettingError for a head that there is not.
template <class T>
void record_heads(BlockRun<T>& run, std::string_view name, const Tensor4<T>& x, std::size_t heads,
                  std::string_view rows);

/// Multiplies the rows of each head's bias by the gates computed from x, (1, tokens, heads * d).
template <class T>
void gate_bias(const Compute& compute, const AttentionPart& part, const Tensor3<T>& x,
               Array<double>& bias);

}  // namespace attn
