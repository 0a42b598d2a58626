// The shapes and kinds of a question's tensors, without elements, so that a layer can be planned
// before its input exists.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// A size for each axis; empty: the tensor is absent.
using Shape = std::vector<std::size_t>;

/// One projection, or one for each independent head.
struct ProjectionShape {
    std::size_t groups, d_in, d_out;
    bool has_bias;
    bool in_out = false;  ///< stored as (groups, d_in, d_out), else as (groups, d_out, d_in)

    friend bool operator==(const ProjectionShape&, const ProjectionShape&) = default;
};

struct WeightShapes {
    ProjectionShape query, key, value;
    std::optional<ProjectionShape> out;
    bool has_head_norms = false;  ///< of queries or keys

    friend bool operator==(const WeightShapes&, const WeightShapes&) = default;
};

/// As Operands (core/layer/operands.hpp).
struct OperandShapes {
    Shape inputs, context;
    Shape query, key, value;
    Shape past_key, past_value;
    Shape past_state, decay, beta;
    Shape mask, key_padding_mask;
    bool mask_is_boolean = false, key_padding_mask_is_boolean = false;
    bool has_token_ids = false;
    std::optional<WeightShapes> weights;  ///< parameters that are given
    std::optional<std::size_t> norm;      ///< columns of the norm before the layer

    friend bool operator==(const OperandShapes&, const OperandShapes&) = default;
};

/// A tensor with the name that requests and results give it.
struct OperandShapeRow {
    const char* key;
    Shape OperandShapes::*shape;
    std::string_view array = key;  ///< that records it as it is given
};
inline constexpr OperandShapeRow operand_shape_rows[] = {
    {"inputs", &OperandShapes::inputs},
    {"context", &OperandShapes::context},
    {"query", &OperandShapes::query},
    {"key", &OperandShapes::key},
    {"value", &OperandShapes::value},
    {"past_key", &OperandShapes::past_key},
    {"past_value", &OperandShapes::past_value},
    {"past_state", &OperandShapes::past_state},
    {"decay", &OperandShapes::decay},
    {"beta", &OperandShapes::beta},
    {"mask", &OperandShapes::mask, "attn_mask"},
    {"key_padding_mask", &OperandShapes::key_padding_mask},
};

/// The shape of the operand with this name, which must be in `operand_shape_rows`.
constexpr Shape OperandShapes::*shape_of_operand(std::string_view key) {
    const OperandShapeRow* row = operand_shape_rows;
    while (row->key != key) ++row;
    return row->shape;
}

/// A mask that is an operand: boolean or additive.
struct MaskOperandRow {
    const char* key;
    Shape OperandShapes::*shape;
    bool OperandShapes::*is_boolean;
};
inline constexpr MaskOperandRow mask_operand_rows[] = {
    {"mask", &OperandShapes::mask, &OperandShapes::mask_is_boolean},
    {"key_padding_mask", &OperandShapes::key_padding_mask,
     &OperandShapes::key_padding_mask_is_boolean},
};

}  // namespace attn
