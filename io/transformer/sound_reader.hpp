// Reads the convolutions of models that hear.
#pragma once

#include <cstddef>
#include <string>

#include "core/model/convolution.hpp"
#include "io/transformer/tensor_set.hpp"

namespace attn::io {

/// name.weight, (channels, channels of a group, taps), and name.bias if there is one. Errors: kind
/// input if the weight is missing or has another shape; a size of 0 is that of the tensor.
Convolution convolution_of(const TensorSet& tensors, const std::string& name, std::size_t d_in,
                           std::size_t taps, std::size_t groups = 1);

/// The same of a weight that is stored as directions and their lengths, one for each tap.
Convolution normed_convolution_of(const TensorSet& tensors, const std::string& name,
                                  std::size_t d_in, std::size_t taps, std::size_t groups);

}  // namespace attn::io
