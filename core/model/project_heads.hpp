// Projects hidden states to queries, keys and values.
#pragma once

#include <cstddef>
#include <optional>

#include "core/base/tensor.hpp"
#include "core/model/block.hpp"
#include "core/model/products.hpp"

namespace attn {

template <class T>
struct Projected {
    Tensor3<T> query, key, value, gate;  ///< (1, tokens, heads * d)
    Tensor3<T> latent;                   ///< of the queries
};

/// Projects x, (1, tokens, width), to queries, and its source to keys and values. The source is x
/// except in cross-attention. Without `has_keys`, only queries.
template <class T>
Projected<T> project_heads(const Compute& compute, const AttentionPart& part, const Tensor3<T>& x,
                           const Tensor3<T>& source, bool has_keys);

/// Norms each head of (1, tokens, heads * d), or all heads together, in place.
template <class T>
void norm_heads(const Compute& compute, const std::optional<NormSpec>& norm, bool whole,
                std::size_t heads, Tensor3<T>& x);

/// Clamps all elements to [-limit, limit].
template <class T>
void clip(double limit, Tensor3<T>& x);

/// (1, tokens, heads * d) to (1, heads, tokens, d).
template <class T>
Tensor4<T> split_columns(const Tensor3<T>& x, std::size_t heads);

/// (heads, tokens, d) to (1, tokens, heads * d).
template <class T>
Tensor3<T> join_columns(const Array<T>& x);

}  // namespace attn
