// Rotary position embedding of queries and keys.
#pragma once

#include "core/settings.hpp"
#include "core/tensor.hpp"

namespace attn {

/// Rotates the first `dims` columns of each row of x, (batch, heads, rows, d), in place. Row r has
/// position first_position + r; pair i turns by position * base^(-2i/dims). Pairs are (i, i +
/// dims/2) for `half` and (2i, 2i + 1) for `interleaved`. Angles are taken in float64 and each
/// result is rounded to T once. Source: Su et al. 2021, arXiv 2104.09864; ONNX RotaryEmbedding.
template <class T>
void rotate(Tensor4<T>& x, Rope rope, double base, std::size_t dims, std::size_t first_position);

}  // namespace attn
