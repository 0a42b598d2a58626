#include "core/layer/operands.hpp"

namespace attn {
namespace {

template <class T>
ProjectionShape shape_of_projection(const Projection<T>& p) {
    return {p.groups(), p.d_in(), p.d_out(), p.has_bias(), p.in_out};
}

template <class T>
WeightShapes shapes_of_weights(const LayerWeights<T>& w) {
    WeightShapes shapes{shape_of_projection(w.query), shape_of_projection(w.key),
                        shape_of_projection(w.value), std::nullopt};
    if (w.out) shapes.out = shape_of_projection(*w.out);
    return shapes;
}

}  // namespace

OperandShapes shapes_of(const Operands& operands) {
    OperandShapes shapes;
    for (const auto& [shape, array] : {std::pair(&shapes.inputs, &operands.inputs),
                                       {&shapes.context, &operands.context},
                                       {&shapes.query, &operands.query},
                                       {&shapes.key, &operands.key},
                                       {&shapes.value, &operands.value},
                                       {&shapes.past_key, &operands.past_key},
                                       {&shapes.past_value, &operands.past_value}})
        *shape = array->shape();
    shapes.mask = operands.mask.shape();
    shapes.key_padding_mask = operands.key_padding_mask.shape();
    shapes.mask_is_boolean = operands.mask_is_boolean;
    shapes.key_padding_mask_is_boolean = operands.key_padding_mask_is_boolean;
    shapes.has_token_ids = !operands.token_ids.empty();
    if (operands.weights)
        shapes.weights = std::visit([](const auto& given) { return shapes_of_weights(*given); },
                                    *operands.weights);
    if (operands.norm) shapes.norm = operands.norm->weight.size();
    return shapes;
}

}  // namespace attn
