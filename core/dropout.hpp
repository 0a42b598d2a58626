// PyTorch's dropout over the attention weights, on either of its two streams.
#pragma once

#include <cstddef>
#include <optional>

#include "core/settings.hpp"
#include "core/tensor.hpp"
#include "core/torch_random.hpp"

namespace attn {

/// The weights that one dropout runs over, in the order of its draws: (outer, inner, rows,
/// columns), row-major. Rows outside [first_row, first_row + kept_rows) are drawn but not kept.
struct DropoutExtent {
    std::size_t outer, inner, rows, columns;
    std::size_t first_row, kept_rows;
};

/// The keep mask times 1/(1-p) in T: (outer, inner, kept_rows, columns). An element is kept where
/// its uniform is below 1 - p. p = 0 gives ones and p = 1 zeros, and neither draws anything.
/// mt19937 draws one draw64 an element; mkl draws one draw32 in all, the seed of an MCG31 stream.
template <class T>
Tensor4<T> dropout_mask(double p, DropoutStream stream, const DropoutExtent& extent,
                        TorchGenerator& generator);

}  // namespace attn
