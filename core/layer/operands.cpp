#include "core/layer/operands.hpp"

#include "core/base/error.hpp"
#include "core/layer/stages.hpp"

namespace attn {
namespace {

template <class T>
WeightShapes shapes_of_weights(const LayerWeights<T>& w) {
    const auto shape = [](const Projection<T>& p) {
        return ProjectionShape{p.groups(), p.d_in(), p.d_out(), p.has_bias(), p.in_out};
    };
    WeightShapes shapes{shape(w.query), shape(w.key), shape(w.value), std::nullopt,
                        w.query_norm || w.key_norm};
    if (w.out) shapes.out = shape(*w.out);
    return shapes;
}

}  // namespace

double quantised(double number, NumberType type, const char* key) {
    const double rounded = row_of(type).round(number);
    if (std::isfinite(number) && !std::isfinite(rounded))
        throw SettingError(ErrorKind::input, key, "a number ", overflow_text(type));
    return rounded;
}

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
    RealArray array = operands[operand];
    if (row.kind == OperandKind::gate) {
        const Tensor4<double> gate =
            gate_of_heads(plan, array.take<double>(), plan.config.*row.constants);
        if (gate.size() == 0) return std::nullopt;
        OperandNumbers numbers{gate.shape(), {gate.begin(), gate.end()}};
        std::ranges::transform(numbers.values, numbers.values.begin(),
                               row_of(plan.config.dtype).round);
        return numbers;
    }
    if (array.dimension() == 0) return std::nullopt;
    if (row.is_mask()) array = full_mask(operand, array.take<double>());
    OperandNumbers numbers{{}, {}, operands.is_boolean[operand]};
    numbers.values =
        rounded_doubles(array, numbers.is_boolean ? NumberType::float64 : plan.config.dtype);
    if (row.is_mask()) {
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
        const auto projection = [&](const std::string& name, const ProjectionShape& s) {
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
        return std::make_shared<const LayerWeights<T>>(weights_of_shapes<T>(shapes, projection));
    });
}

Operands allocate_operands(const OperandShapes& shapes, NumberType dtype) {
    Operands operands;
    for_dtype(dtype, [&]<class T>(T) {
        for (const OperandRow& row : operand_rows)
            if (const Shape& shape = shapes[row]; !shape.empty() && !row.is_mask())
                operands[row] = Array<T>::from_shape(shape);
        if (shapes.weights)
            operands.weights =
                std::make_shared<const LayerWeights<T>>(allocated_weights<T>(*shapes.weights));
    });
    for (const OperandRow& row : operand_rows)
        if (const Shape& shape = shapes[row]; !shape.empty() && row.is_mask())
            operands[row] = Array<double>::from_shape(shape);
    operands.is_boolean = shapes.is_boolean;
    if (shapes.norm) operands.norm.emplace();
    return operands;
}

}  // namespace attn
