// Shared by image models: patches, and the image sizes in their configs.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "core/model/stages.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {

/// Marks the keys as read that do not affect the hidden states.
void pass_vision_keys(const ModelConfig& config);

/// Rows and columns, from one integer for both or a list of two. Errors: kind input.
std::array<std::size_t, 2> pair_of(const ModelConfig& config, const std::string& key);

/// Rows and columns of patches, in the given image or else in the image size of the config.
std::array<std::size_t, 2> grid_of(const BlockReader& reader);

/// The convolution `name` over patches of pixels, without tokens and positions.
PatchInput patches_of(const ModelReader& reader, const std::string& name);

}  // namespace attn::io
