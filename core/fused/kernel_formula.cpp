#include "core/fused/kernel_formula.hpp"

#include <algorithm>

namespace attn {

bool suits_kernels(const Expression& expression, const ExpressionSizes& sizes) {
    if (expression.nodes.size() > kernels::max_formula_nodes) return false;
    // Of quotients too, which are rounded down.
    const double exact = sizes.in_float32 ? 0x1p22 : 0x1p51;
    const auto is_exact = [&](double x) { return x >= -exact && x <= exact; };
    for (const auto& array : expression.arrays)
        if (static_cast<double>(array->size()) > exact) return false;
    return holds_everywhere(expression, sizes, [&](const std::vector<NumberRange>& ranges) {
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            const bool is_safe =
                expression.nodes[i].is_real ||
                (!ranges[i].nan && is_exact(ranges[i].low) && is_exact(ranges[i].high));
            if (!is_safe) return false;
        }
        return true;
    });
}

template <class T>
KernelFormula<T>::KernelFormula(const Expression& expression, const ExpressionSizes& sizes,
                                std::size_t first_key)
    : formula_{nullptr, 0, static_cast<T>(first_key)} {
    for (const auto& array : expression.arrays) {
        arrays_.emplace_back(array->size());
        std::transform(array->begin(), array->end(), arrays_.back().begin(),
                       [](double x) { return static_cast<T>(x); });
    }
    for (const ExpressionNode& from : expression.nodes) {
        kernels::FormulaNode<T> node{};
        node.operation = from.operation;
        node.variable = from.variable;
        node.is_real = from.is_real;
        node.number = static_cast<T>(from.number);
        const std::size_t operands = row_of(from.operation).operands;
        for (std::size_t i = 0; i < operands; ++i)
            node.operand[i] = static_cast<unsigned char>(from.operand[i]);
        // Operations of one operand ignore the second, which is read.
        if (operands == 1) node.operand[1] = node.operand[0];
        for (std::size_t axis = 0; axis < from.index.size(); ++axis) {
            node.operand[axis] = static_cast<unsigned char>(from.index[axis]);
            node.size[axis] = expression.arrays[from.array]->shape(axis);
            node.operands = static_cast<unsigned char>(axis + 1);
        }
        if (from.operation == Operation::element) node.array = arrays_[from.array].data();
        const auto constant = [&](std::size_t size) {
            node.operation = Operation::number;
            node.number = static_cast<T>(size);
        };
        if (from.operation == Operation::variable && from.variable == Variable::q_len)
            constant(sizes.q_len);
        if (from.operation == Operation::variable && from.variable == Variable::kv_len)
            constant(sizes.kv_len);
        if (from.operation == Operation::variable && from.variable == Variable::heads)
            constant(sizes.heads);
        nodes_.push_back(node);
    }
    formula_.nodes = nodes_.data();
    formula_.node_count = nodes_.size();
}

template class KernelFormula<float>;
template class KernelFormula<double>;

}  // namespace attn
