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
    for (const OperandRow& row : operand_rows) shapes[row] = operands[row].shape();
    shapes.is_boolean = operands.is_boolean;
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
        for (const OperandRow& row : operand_rows)
            if (const Shape& shape = shapes[row]; !shape.empty() && !row.is_mask())
                operands[row] = Array<T>::from_shape(shape);
        if (shapes.weights) operands.weights = allocated_weights<T>(*shapes.weights);
    });
    for (const OperandRow& row : operand_rows)
        if (const Shape& shape = shapes[row]; !shape.empty() && row.is_mask())
            operands[row] = Array<double>::from_shape(shape);
    operands.is_boolean = shapes.is_boolean;
    if (shapes.norm) operands.norm.emplace();
    return operands;
}

}  // namespace attn
