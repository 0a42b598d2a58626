// Reads the inputs of audio models, convolutions, and of image models: patches, and the image sizes
// in their configs.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "core/model/products.hpp"
#include "core/model/stages.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {

/// name.weight, (output channels, input channels per group, taps), and name.bias if there is one. A
/// size of 0 accepts the tensor's. Errors: kind input if the weight is missing or has another
/// shape.
Convolution convolution_of(const TensorSet& tensors, const std::string& name, std::size_t d_in,
                           std::size_t taps, std::size_t groups = 1);

/// The same for a weight-normalized convolution: directions, and one magnitude per tap.
Convolution normed_convolution_of(const TensorSet& tensors, const std::string& name,
                                  std::size_t d_in, std::size_t taps, std::size_t groups);

/// Rows and columns, from one integer for both or a list of two. Errors: kind input.
std::array<std::size_t, 2> pair_of(const ModelConfig& config, const std::string& key);

/// Rows and columns of patches, in the given image or else in the image size of the config.
std::array<std::size_t, 2> grid_of(const BlockReader& reader);

/// The convolution `name` over patches of pixels, the tokens before them and the table of
/// positions, or null, in the module "embeddings.".
PatchInput patches_of(const ModelReader& reader, const std::string& name,
                      const std::vector<const char*>& tokens, const char* positions);

}  // namespace attn::io
