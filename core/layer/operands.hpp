// The tensors of a question.
#pragma once

#include <cstdint>

#include "core/base/function_ref.hpp"
#include "core/base/real_array.hpp"
#include "core/layer/weights.hpp"

namespace attn {

struct Plan;

/// The tensors of a question, in float32 or float64, whatever the dtype: core converts them once.
/// Masks are of float64. An array of rank 0 is absent. Shapes:
///
/// - inputs: (tokens, d_in) or (batch, tokens, d_in); not with a query;
/// - context: as inputs, its own number of tokens and columns;
/// - query, key, value: (len, d), (heads, len, d), (batch, heads, len, d) or, if the setting heads
///   is given, (len, heads * d), (batch, len, heads * d). Keys and values have kv_heads;
/// - caches: the axes of their arrays, or those of them that the result has;
/// - decay, beta: those that check_gate_shape in core/plan/sizes.cpp allows;
/// - mask: broadcasts to (batch, heads, q_len, kv_len); key_padding_mask: (batch, kv_len).
struct Operands : ByOperand<RealArray> {
    ByOperand<bool> is_boolean;           ///< masks
    std::vector<std::int64_t> token_ids;  ///< of `--text` or `--token-ids`; else empty

    /// Parameters in the settings' dtype; null: they are drawn.
    std::optional<AnyLayerWeights> weights;
    std::optional<InputNorm> norm;  ///< applied to the inputs first

    /// Of inputs that are drawn: where the draws of the parameters begin. Null: it is found again.
    std::shared_ptr<const RandomStream> after_inputs;
};

/// A finite number rounded to the type. Errors: kind input, of the setting `key`, if it is beyond
/// the type's range.
double quantised(double number, NumberType type, const char* key);

/// The parameters of the projections in that type; empty: as they are.
template <class T>
std::shared_ptr<const LayerWeights<T>> quantised(std::shared_ptr<const LayerWeights<T>> weights,
                                                 std::optional<NumberType> type) {
    if (!type) return weights;
    return std::make_shared<const LayerWeights<T>>(with_numbers(*weights, [&](T x) {
        return static_cast<T>(quantised(static_cast<double>(x), *type, "dtype"));
    }));
}

inline AnyLayerWeights quantised(AnyLayerWeights weights, std::optional<NumberType> type) {
    return std::visit(
        [&](auto& given) -> AnyLayerWeights { return quantised(std::move(given), type); }, weights);
}

OperandShapes shapes_of(const Operands& operands);

/// A mask as (batch, heads, q_len, kv_len), where the axes that it broadcasts along are 1.
Array<double> full_mask(OperandId mask, Array<double> values);

/// Numbers in the type of the computation as float64.
std::vector<double> rounded_doubles(const RealArray& array, NumberType dtype);

/// An operand as (batch, heads, rows, columns), where those of a mask that broadcast are 1.
struct OperandNumbers {
    std::array<std::size_t, 4> shape;
    std::vector<double> values;  ///< rounded to the computation's type; of booleans 0 and 1
    bool is_boolean = false;
};

/// An operand whose heads are an axis, a mask, or a gate, also of constants; nothing where it is
/// absent. The plan is that of the operands.
std::optional<OperandNumbers> numbers_of_operand(const Plan& plan, const Operands& operands,
                                                 OperandId operand);

/// Parameters of these shapes, from read("W_query", shape), read("b_query", shape) and so on, which
/// return as many numbers.
AnyLayerWeights read_layer_weights(
    const WeightShapes& shapes, NumberType dtype,
    FunctionRef<RealArray(const std::string& name, const Shape& shape)> read);

/// Operands of these shapes for a dry run, in `dtype`: their elements are not set, and they have no
/// token ids.
Operands allocate_operands(const OperandShapes& shapes, NumberType dtype);

}  // namespace attn
