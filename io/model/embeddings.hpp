// The input of a published model's layers: embedded token ids, and its norms: before the attention,
// and of queries and keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/layer/norm.hpp"
#include "io/model/find_layer.hpp"

namespace attn::io {

/// The properties of a norm that tensors do not determine.
struct NormSettings {
    NormForm form = NormForm::layer;
    double eps = 0;
    bool may_lack_bias = false;  ///< of a LayerNorm
};

/// The properties of an embedding that tensors do not determine.
struct EmbeddingSettings {
    std::size_t first_position = 0;  ///< the position of the first id, a row of the table
    std::optional<double> scale;     ///< on the rows of the ids; empty: 1
    NormSettings norm;               ///< after the sum, if the family has one
};

/// The sum of the model's embeddings for these ids, (tokens, d_in), the input of its first block:
/// of the ids, times the scale, of positions from first_position on, and of segment 0, as far as
/// the family has them, then BERT's norm. Sums are rounded to the dtype as in PyTorch. Only the
/// required rows are read. Errors: kind input for ids beyond the vocabulary and tensors that are
/// missing or do not match; SettingError with key "token_ids" if the family has no embedding.
Array<double> embed_token_ids(const ArrayFile& file, const ModelLayer& layer,
                              const std::vector<std::uint64_t>& ids,
                              const EmbeddingSettings& settings, Dtype dtype);

/// The width of the model's embedding of ids; empty if the file or the family has none.
std::optional<std::size_t> embedding_width(const ArrayFile& file, const ModelLayer& layer);

/// Whether the file holds the model's norm before this attention layer.
bool has_pre_norm(const ArrayFile& file, const ModelLayer& layer);

/// The model's norm before this attention layer. Errors: SettingError with key "pre_norm" if the
/// family has none; otherwise as above.
InputNorm read_pre_norm(const ArrayFile& file, const ModelLayer& layer,
                        const NormSettings& settings);

/// The modules of the layer's norms of queries and keys, by their full names; empty unless it has
/// both.
struct HeadNormNames {
    std::string query, key;
    explicit operator bool() const { return !query.empty(); }
};
HeadNormNames head_norm_names(const ArrayFile& file, const ModelLayer& layer);

/// One of these norms, of `heads` heads of `width` columns together. Errors: kind input if it is as
/// wide as neither one head nor all of them.
InputNorm read_head_norm(const ArrayFile& file, const std::string& name, std::size_t width,
                         std::size_t heads, const NormSettings& settings);

}  // namespace attn::io
