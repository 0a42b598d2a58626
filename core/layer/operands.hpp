// The tensors of a question.
#pragma once

#include <cstdint>

#include "core/base/real_array.hpp"
#include "core/base/tensor.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/weights.hpp"

namespace attn {

/// The tensors of a question, in the dtype of the computation or the other one: core rounds once.
/// Masks are of float64. An array of rank 0 is absent. Shapes:
///
/// - inputs: (tokens, d_in) or (batch, tokens, d_in); not with a query;
/// - context: as inputs, its own number of tokens and columns;
/// - query, key, value: (len, d), (heads, len, d), (batch, heads, len, d) or, if the setting heads
///   is given, (len, heads * d), (batch, len, heads * d). Keys and values have kv_heads;
/// - past_key, past_value: (batch, kv_heads, past_len, d), or the rank of the result;
/// - past_state: (batch, kv_heads, d_k, d_v), or the rank of the result;
/// - decay, beta: those that check_gate_shape in core/plan/sizes.cpp allows;
/// - mask: broadcasts to (batch, heads, q_len, kv_len); key_padding_mask: (batch, kv_len).
struct Operands : ByOperand<RealArray> {
    ByOperand<bool> is_boolean;           ///< masks
    std::vector<std::int64_t> token_ids;  ///< of `--text`; else empty

    /// Parameters in the settings' dtype; null: they are drawn.
    std::optional<AnyLayerWeights> weights;
    std::optional<InputNorm> norm;  ///< applied to the inputs first
};

OperandShapes shapes_of(const Operands& operands);

/// Operands of these shapes for a dry run, in `dtype`: their elements are not set, and they have no
/// token ids.
Operands allocate_operands(const OperandShapes& shapes, NumberType dtype);

}  // namespace attn
