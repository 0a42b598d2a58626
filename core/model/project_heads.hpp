// Queries, keys and values of the rows of hidden states, by the projections of a part.
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
    Tensor3<T> latent;                   ///< of queries
};

/// Of x, (1, tokens, width), and its source, which is x unless it is cross attention. Without
/// `has_keys`, queries alone.
template <class T>
Projected<T> project_heads(const Compute& compute, const AttentionPart& part, const Tensor3<T>& x,
                           const Tensor3<T>& source, bool has_keys);

/// Norms each head of (1, tokens, heads * d), or all of them together, in place.
template <class T>
void norm_heads(const Compute& compute, const std::optional<NormSpec>& norm, bool whole,
                std::size_t heads, Tensor3<T>& x);

/// Limits all elements to [-limit, limit].
template <class T>
void clip(double limit, Tensor3<T>& x);

/// (1, tokens, heads * d) to (1, heads, tokens, d).
template <class T>
Tensor4<T> split_columns(const Tensor3<T>& x, std::size_t heads);

/// (heads, tokens, d) to (1, tokens, heads * d).
template <class T>
Tensor3<T> join_columns(const Array<T>& x);

}  // namespace attn
