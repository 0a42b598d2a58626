// Convolutions over the tokens of a sequence, and norms of channels over time.
#pragma once

#include <cstddef>

#include "core/base/tensor.hpp"
#include "core/model/parameter.hpp"
#include "core/model/products.hpp"

namespace attn {

/// A convolution over rows, like torch.nn.Conv1d. The weight is (output channels, input channels
/// per group, taps).
struct Convolution {
    Parameter weight, bias;  ///< bias null: none
    std::size_t stride = 1, padding = 0, groups = 1;

    std::size_t taps() const { return weight->shape()[2]; }
    std::size_t d_in() const { return weight->shape()[1] * groups; }
    std::size_t d_out() const { return weight->shape()[0]; }
};

/// (1, tokens, d_in) to (1, fewer tokens, d_out). Errors: SettingError if there are too few tokens
/// or the number of columns is not d_in.
template <class T>
Tensor3<T> convolve(const Compute& compute, const Convolution& convolution, const Tensor3<T>& x);

/// Group norm: norms each of `groups` groups of columns over all tokens, then scales and shifts
/// each column.
template <class T>
void norm_channels(const NormSpec& norm, std::size_t groups, Tensor3<T>& x);

}  // namespace attn
