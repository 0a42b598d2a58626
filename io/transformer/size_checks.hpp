// Sizes that a config gives, against the tensors: the tensors alone would be computed, but are not
// those of the model that the config describes. transformers refuses them as well.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/model/model.hpp"
#include "io/transformer/block_reader.hpp"

namespace attn::io {

/// Sizes of the embeddings. Errors: kind input, with the tensor, the key and both sizes.
void check_sizes(const ModelSource& source, const ModelSpec& model);

/// The model's width and the width inside the feed-forward layer, of a finished block.
void check_sizes(const BlockReader& reader, const TransformerBlock& block);

/// The widths inside experts and inside the expert that all tokens share.
void check_sizes(const BlockReader& reader, const ExpertNames& names, const Experts& experts);

/// Requires that `found`, the size of an axis of the tensor, is the size that the config gives for
/// the key, or for this layer in a list. Accepts any size if the config does not give the key.
void require_size(const ModelConfig& config, std::string_view key, std::size_t layer,
                  const Parameter& tensor, std::size_t found, std::string_view what);

}  // namespace attn::io
