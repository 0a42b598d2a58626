// Attention layers: self, causal and multihead with their parameters, and the bare operator sdpa.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "core/settings.hpp"
#include "core/tensor.hpp"

namespace attn {

/// The tensors of a question, as read. They are float64 whatever the dtype: core rounds once.
struct Operands {
    Array<double> inputs;  ///< (tokens, d_in) or (batch, tokens, d_in); empty for sdpa
    std::vector<std::int64_t> token_ids;  ///< of a text; else empty
    Array<double> query, key, value;      ///< sdpa: (q_len, d_k), (kv_len, d_k), (kv_len, d_v)
};

/// Fills in every default and checks every setting against the others and against the shapes.
/// Errors: SettingError of kind usage, shape or input.
Settings resolve(Settings settings, const Operands& operands);

/// Computes the arrays named in `settings.emit`. Settings must be resolved.
Result compute(const Settings& settings, const Operands& operands);

}  // namespace attn
