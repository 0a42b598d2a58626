#include "core/layer/operands.hpp"

#include <algorithm>
#include <utility>

#include "core/base/layout.hpp"
#include "core/plan/plan.hpp"

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

/// A gate's constants, of all key heads or one for each: (batch, kv_heads, tokens, 1).
OperandNumbers constant_gate(const Plan& plan, const std::vector<double>& constants) {
    OperandNumbers gate{{plan.batch, plan.kv_heads, plan.q_len, 1}, {}};
    for (std::size_t i = 0; i < plan.batch * plan.kv_heads; ++i)
        gate.values.insert(gate.values.end(), plan.q_len,
                           row_of(plan.config.dtype)
                               .round(constants[constants.size() == 1 ? 0 : i % plan.kv_heads]));
    return gate;
}

/// A gate as (batch, kv_heads, tokens, columns of a head), from heads that are an axis, or next to
/// each other in the columns of a token, or share one column.
void spread_gate(const Plan& plan, OperandNumbers& gate) {
    const std::size_t heads = plan.kv_heads, tokens = plan.q_len;
    const bool in_columns = plan.projects || plan.packed;
    const std::size_t width =
        gate.values.size() / std::max<std::size_t>(plan.batch * tokens, 1);  // of a token
    const std::size_t columns = std::max<std::size_t>(width / heads, 1);
    gate.shape = {plan.batch, heads, tokens, columns};
    if (!in_columns) return;
    std::vector<double> given = std::move(gate.values);
    gate.values.resize(plan.batch * heads * tokens * columns);
    if (width == heads * columns)
        return copy_swapped(given.data(), {plan.batch, tokens, heads, columns}, gate.values.data());
    for (std::size_t i = 0; i < plan.batch * heads; ++i)
        std::copy_n(given.data() + i / heads * tokens, tokens, gate.values.data() + i * tokens);
}

}  // namespace

Array<double> full_mask(OperandId mask, Array<double> values) {
    const std::array shape = full_shape(mask, values.shape());
    values.reshape({shape.begin(), shape.end()});
    return values;
}

std::vector<double> rounded_doubles(const RealArray& array, NumberType dtype) {
    if (array.dimension() == 0) return {};
    return array.visit([&](const auto& numbers) {
        std::vector<double> rounded(numbers.begin(), numbers.end());
        std::ranges::transform(rounded, rounded.begin(), row_of(dtype).round);
        return rounded;
    });
}

std::optional<OperandNumbers> numbers_of_operand(const Plan& plan, const Operands& operands,
                                                 OperandId operand) {
    const OperandRow& row = operand.row();
    if (row.kind == OperandKind::gate && !(plan.config.*row.constants).empty())
        return constant_gate(plan, plan.config.*row.constants);
    RealArray array = operands[operand];
    if (array.dimension() == 0) return std::nullopt;
    if (row.is_mask()) array = full_mask(operand, array.take<double>());
    OperandNumbers numbers{{}, {}, operands.is_boolean[operand]};
    numbers.values =
        rounded_doubles(array, numbers.is_boolean ? NumberType::float64 : plan.config.dtype);
    if (row.kind == OperandKind::gate) {
        spread_gate(plan, numbers);
    } else if (row.is_mask()) {
        std::ranges::copy(array.shape(), numbers.shape.begin());
    } else {
        const std::size_t rows = array.shape(array.dimension() - 2), columns = array.shape().back();
        const std::size_t head = std::max<std::size_t>(plan.batch * rows * columns, 1);
        numbers.shape = {plan.batch, numbers.values.size() / head, rows, columns};
    }
    if (numbers.is_boolean)
        for (double& x : numbers.values) x = x != 0 ? 1 : 0;
    return numbers;
}

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

AnyLayerWeights read_layer_weights(
    const WeightShapes& shapes, NumberType dtype,
    FunctionRef<RealArray(const std::string& name, const Shape& shape)> read) {
    return for_dtype(dtype, [&]<class T>(T) -> AnyLayerWeights {
        const auto projection = [&](const ProjectionShape& s, const std::string& name) {
            const std::array weight{s.groups, s.in_out ? s.d_in : s.d_out,
                                    s.in_out ? s.d_out : s.d_in};
            Projection<T> p;
            p.in_out = s.in_out;
            p.weight = {read("W_" + name, {weight.begin(), weight.end()}).template take<T>(),
                        weight};
            if (s.has_bias)
                p.bias = {read("b_" + name, {s.groups, s.d_out}).template take<T>(),
                          {s.groups, s.d_out}};
            return p;
        };
        LayerWeights<T> weights{projection(shapes.query, "query"),
                                projection(shapes.key, "key"),
                                projection(shapes.value, "value"),
                                {},
                                {},
                                {}};
        if (shapes.out) weights.out = projection(*shapes.out, "out");
        return std::make_shared<const LayerWeights<T>>(std::move(weights));
    });
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
