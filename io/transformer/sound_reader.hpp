// Reads the convolutions of audio models.
#pragma once

#include <cstddef>
#include <string>

#include "core/model/products.hpp"
#include "io/transformer/tensor_set.hpp"

namespace attn::io {

/// name.weight, (output channels, input channels per group, taps), and name.bias if there is one. A
/// size of 0 accepts the tensor's. Errors: kind input if the weight is missing or has another
/// shape.
Convolution convolution_of(const TensorSet& tensors, const std::string& name, std::size_t d_in,
                           std::size_t taps, std::size_t groups = 1);

/// The same for a weight-normalized convolution: directions, and one magnitude per tap.
Convolution normed_convolution_of(const TensorSet& tensors, const std::string& name,
                                  std::size_t d_in, std::size_t taps, std::size_t groups);

}  // namespace attn::io
