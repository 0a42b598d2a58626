// What a published model feeds its layers: embedded token ids, and the norm before the attention.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/layer/norm.hpp"
#include "io/model/find_layer.hpp"

namespace attn::io {

/// What tensors do not show of a norm.
struct NormSettings {
    NormForm form = NormForm::layer;
    double eps = 0;
    bool may_lack_bias = false;  ///< of a LayerNorm
};

/// What tensors do not show of an embedding.
struct EmbeddingSettings {
    std::size_t first_position = 0;  ///< the row of the table of positions for the first id
    std::optional<double> scale;     ///< on the rows of the ids; empty: 1
    NormSettings norm;               ///< after the sum, where the family has one
};

/// The sum of the model's embeddings for these ids, (tokens, d_in), as its first block gets it: of
/// the ids, times the scale, of positions first_position and up, and of segment 0, each where the
/// family has it, then the norm that BERT has there. Sums are rounded to the dtype as in PyTorch.
/// Only the rows that are needed are read. Errors: kind input for ids beyond the vocabulary and
/// tensors that are missing or do not fit; SettingError with key "token_ids", where the family has
/// no embedding.
Array<double> embed_token_ids(const ArrayFile& file, const ModelLayer& layer,
                              const std::vector<std::uint64_t>& ids,
                              const EmbeddingSettings& settings, Dtype dtype);

/// The width of the model's embedding of ids; empty where the file or the family has none.
std::optional<std::size_t> embedding_width(const ArrayFile& file, const ModelLayer& layer);

/// Whether the file holds the norm that the model has before this attention layer.
bool has_pre_norm(const ArrayFile& file, const ModelLayer& layer);

/// The norm that the model has before this attention layer. Errors: SettingError with key
/// "pre_norm", where the family has none; else as above.
InputNorm read_pre_norm(const ArrayFile& file, const ModelLayer& layer,
                        const NormSettings& settings);

}  // namespace attn::io
