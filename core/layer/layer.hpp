// Attention layers: self, causal, multihead and cross with their parameters, and the bare operator.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/result.hpp"
#include "core/layer/weights.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/settings.hpp"

namespace attn {

/// The tensors of a question, as read. They are float64 whatever the dtype: core rounds once. An
/// array of rank 0 is one that is not there.
struct Operands {
    Array<double> inputs;   ///< (tokens, d_in) or (batch, tokens, d_in); not in sdpa
    Array<double> context;  ///< cross: as inputs, its own number of tokens and columns
    std::vector<std::int64_t> token_ids;  ///< of a text; else empty

    /// sdpa: (len, d), (heads, len, d), (batch, heads, len, d) or, where the setting heads is
    /// given, (len, heads * d), (batch, len, heads * d). Keys and values have kv_heads.
    Array<double> query, key, value;

    Array<double> past_key,
        past_value;                  ///< (batch, kv_heads, past_len, d), or as the answer's rank
    Array<double> mask;              ///< broadcasts to (batch, heads, q_len, kv_len)
    Array<double> key_padding_mask;  ///< (batch, kv_len)
    bool mask_is_boolean = false, key_padding_mask_is_boolean = false;

    /// Parameters in the settings' dtype; without them they are drawn.
    std::optional<AnyLayerWeights> weights;
    std::optional<InputNorm> norm;  ///< applied to the inputs first
};

/// Fills in every default and checks every setting against the others and against the shapes.
/// `may_stream` is compute's. Errors: SettingError of kind usage, shape, unsupported or input.
Settings resolve(Settings settings, const Operands& operands, bool may_stream = false);

/// Which query may see which key, by every mask of the question; -Infinity of an additive one
/// blocks as well. Settings must be resolved.
Mask mask_of(const Settings& settings, const Operands& operands);

/// Computes the arrays named in `settings.emit`. Settings must be resolved. Operands are let go of
/// as soon as they are used. Where `may_stream`, large arrays of weights may come as streams, which
/// use the workers while they are read.
Result compute(const Settings& settings, Operands operands, ThreadPool& workers,
               bool may_stream = false);

}  // namespace attn
