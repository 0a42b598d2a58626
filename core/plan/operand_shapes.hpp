// The shapes and kinds of a question's tensors, without elements, so that a layer can be planned
// before its input exists.
#pragma once

#include "core/plan/operand_table.hpp"

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

/// f("query", projection), and so on, for each of a layer's projections or their shapes.
template <class Weights, class Function>
void for_each_projection(Weights&& weights, const Function& f) {
    f("query", weights.query);
    f("key", weights.key);
    f("value", weights.value);
    if (weights.out) f("out", *weights.out);
}

/// As Operands (core/layer/operands.hpp).
struct OperandShapes : ByOperand<Shape> {
    ByOperand<bool> is_boolean;  ///< masks
    bool has_token_ids = false;
    std::optional<WeightShapes> weights;  ///< parameters that are given
    std::optional<std::size_t> norm;      ///< columns of the norm before the layer

    friend bool operator==(const OperandShapes&, const OperandShapes&) = default;
};

inline bool has_boolean_mask(const ByOperand<bool>& is_boolean) {
    return std::ranges::any_of(mask_operands,
                               [&](const OperandRow* mask) { return is_boolean[*mask]; });
}

/// The shape of a mask as (batch, heads, q_len, kv_len), where it is 1 if the mask broadcasts.
std::array<std::size_t, 4> full_shape(OperandId mask, const Shape& shape);

}  // namespace attn
