#include "core/layer/operands.hpp"

#include <utility>

namespace attn {
namespace {

template <class T>
ProjectionShape shape_of_projection(const Projection<T>& p) {
    return {p.groups(), p.d_in(), p.d_out(), p.has_bias(), p.in_out};
}

template <class T>
WeightShapes shapes_of_weights(const LayerWeights<T>& w) {
    WeightShapes shapes{shape_of_projection(w.query), shape_of_projection(w.key),
                        shape_of_projection(w.value), std::nullopt, false};
    if (w.out) shapes.out = shape_of_projection(*w.out);
    shapes.has_head_norms = w.query_norm || w.key_norm;
    return shapes;
}

template <class T>
AnyLayerWeights allocated_weights(const WeightShapes& s) {
    LayerWeights<T> weights{
        allocated<T>(s.query), allocated<T>(s.key), allocated<T>(s.value), {}, {}, {}};
    if (s.out) weights.out = allocated<T>(*s.out);
    return std::make_shared<const LayerWeights<T>>(std::move(weights));
}

}  // namespace

OperandShapes shapes_of(const Operands& operands) {
    OperandShapes shapes;
    for (const RealOperandRow& row : real_operand_rows)
        shapes.*row.shape = (operands.*row.reals).shape();
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

Operands allocate_operands(const OperandShapes& shapes, NumberType dtype) {
    Operands operands;
    for_dtype(dtype, [&]<class T>(T) {
        for (const RealOperandRow& row : real_operand_rows)
            if (const Shape& shape = shapes.*row.shape; !shape.empty())
                operands.*row.reals = Array<T>::from_shape(shape);
        if (shapes.weights) operands.weights = allocated_weights<T>(*shapes.weights);
    });
    if (!shapes.mask.empty()) operands.mask = Array<double>::from_shape(shapes.mask);
    if (!shapes.key_padding_mask.empty())
        operands.key_padding_mask = Array<double>::from_shape(shapes.key_padding_mask);
    operands.mask_is_boolean = shapes.mask_is_boolean;
    operands.key_padding_mask_is_boolean = shapes.key_padding_mask_is_boolean;
    if (shapes.norm) operands.norm.emplace();
    return operands;
}

}  // namespace attn
