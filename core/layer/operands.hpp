// The tensors of a question.
#pragma once

#include <cstdint>

#include "core/base/real_array.hpp"
#include "core/base/tensor.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/weights.hpp"

namespace attn {

/// The tensors of a question, in the dtype of the computation or the other one: core rounds once.
/// An array of rank 0 is absent.
struct Operands {
    RealArray inputs;   ///< (tokens, d_in) or (batch, tokens, d_in); not with a query
    RealArray context;  ///< cross: as inputs, its own number of tokens and columns
    std::vector<std::int64_t> token_ids;  ///< of `--text`; else empty

    /// sdpa and linear: (len, d), (heads, len, d), (batch, heads, len, d) or, if the setting heads
    /// is given, (len, heads * d), (batch, len, heads * d). Keys and values have kv_heads.
    RealArray query, key, value;

    RealArray past_key,
        past_value;  ///< (batch, kv_heads, past_len, d), or the rank of the result
    /// linear: (batch, kv_heads, d_k, d_v), or the rank of the result; and of each token, in the
    /// shapes that check_gate_shape in core/plan/sizes.cpp allows.
    RealArray past_state, decay, beta;
    Array<double> mask;              ///< broadcasts to (batch, heads, q_len, kv_len)
    Array<double> key_padding_mask;  ///< (batch, kv_len)
    bool mask_is_boolean = false, key_padding_mask_is_boolean = false;

    /// Parameters in the settings' dtype; null: they are drawn.
    std::optional<AnyLayerWeights> weights;
    std::optional<InputNorm> norm;  ///< applied to the inputs first
};

/// An operand of real numbers, with the name that requests and results give it.
struct RealOperandRow {
    const char* key;
    RealArray Operands::*reals;
    Shape OperandShapes::*shape = shape_of_operand(key);
};
inline constexpr RealOperandRow real_operand_rows[] = {
    {"inputs", &Operands::inputs},         {"context", &Operands::context},
    {"query", &Operands::query},           {"key", &Operands::key},
    {"value", &Operands::value},           {"past_key", &Operands::past_key},
    {"past_value", &Operands::past_value}, {"past_state", &Operands::past_state},
    {"decay", &Operands::decay},           {"beta", &Operands::beta},
};

OperandShapes shapes_of(const Operands& operands);

/// Operands of these shapes for a dry run, in `dtype`: their elements are not set, and they have no
/// token ids.
Operands allocate_operands(const OperandShapes& shapes, NumberType dtype);

}  // namespace attn
