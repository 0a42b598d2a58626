// PyTorch's dropout on the attention weights, with one of its streams.
#pragma once

#include <cstddef>

#include "core/base/cuda_random.hpp"
#include "core/base/tensor.hpp"
#include "core/base/torch_random.hpp"
#include "core/operator/choices.hpp"

namespace attn {

/// The dropout of one question's weights (batch, heads, q_len, kv_len).
struct Dropout {
    double p = 0;
    DropoutStream stream = DropoutStream::mt19937;
    bool head_by_head = false;  ///< each head draws separately, one after the other
    std::size_t q_len = 0;      ///< rows that are drawn, even if fewer are computed
    /// Where the draws begin. Absent if p is 0, and in a dry run, which draws nothing.
    std::optional<TorchGenerator> generator{};
    std::optional<CudaGenerator> cuda{};    ///< instead, of the stream cuda
    std::optional<DropoutKernel> kernel{};  ///< empty: F.dropout draws, on its own
    std::size_t element_size = 4;           ///< bytes of a weight, as F.dropout reads it
    std::size_t first_key = 0;              ///< the column that the call's key 0 has
    std::size_t kv_len = 0;                 ///< columns that are drawn; 0: as many as the call has

    /// The columns that are drawn, given the keys of a call.
    std::size_t columns(std::size_t keys) const { return kv_len == 0 ? keys : kv_len; }
};

/// The first integer, or `end`, that does not satisfy `is_below`. Draws are rounded, which is
/// monotonic: all integers from there on do not.
template <class IsBelow>
std::uint64_t first_without(std::uint64_t end, const IsBelow& is_below) {
    std::uint64_t low = 0;
    while (low < end) {
        const std::uint64_t middle = low + (end - low) / 2;
        if (is_below(middle))
            low = middle + 1;
        else
            end = middle;
    }
    return low;
}

/// The keep mask times 1/(1-p) in T of rows [first_query, first_query + rows): `shape` is (batch,
/// heads, rows, keys of the call). An element is kept where its uniform is below 1 - p: mt19937
/// draws one draw64 per element; mkl draws a single draw32, the seed of an MCG31 stream, at once;
/// for cuda see CudaDropout. Other rows and columns are drawn but not stored. p = 0 gives ones and
/// p = 1 zeros, and neither draws anything.
template <class T>
Tensor4<T> dropout_mask(const Dropout& dropout, std::size_t first_query,
                        const std::array<std::size_t, 4>& shape);

}  // namespace attn
