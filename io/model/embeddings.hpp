// What a published model feeds its layers: embedded token ids, and the norm before the attention.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/layer/norm.hpp"
#include "io/model/family.hpp"

namespace attn::io {

/// The sum of the model's embeddings for these ids, (tokens, d_in), as its first block gets it: of
/// the ids, of positions first_position and up, and of segment 0, each where the family has it,
/// then the norm that BERT has there. Sums are rounded to the dtype as in PyTorch. Only the rows
/// that are needed are read. Errors: kind input for ids beyond the vocabulary and tensors that are
/// missing or do not fit; SettingError with key "token_ids", where the family has no embedding.
Array<double> embed_token_ids(const ArrayFile& file, const ModelLayer& layer,
                              const std::vector<std::uint64_t>& ids, std::size_t first_position,
                              double eps, Dtype dtype);

/// The norm that the model has before this attention layer. Errors: SettingError with key
/// "pre_norm", where the family has none; else as above.
InputNorm read_pre_norm(const ArrayFile& file, const ModelLayer& layer, double eps);

/// Frequencies of the rotary embedding that older files hold must be those that are computed,
/// within the rounding of the type that they are stored in. Other ones are meant where
/// `may_differ`, another number of them where `may_differ_in_number`. Errors: kind input.
void check_frequencies(const ArrayFile& file, const ModelLayer& layer,
                       const std::vector<double>& computed, bool may_differ,
                       bool may_differ_in_number);

}  // namespace attn::io
