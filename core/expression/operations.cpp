#include "core/expression/expression.hpp"

#include <algorithm>

namespace attn {
// Hides the short names of the table from the other files of a unity build.
namespace operation_rows_detail {
namespace {

using enum Operation;
using enum OperationResult;

// Precedence as in C; symbols of two characters before those that they begin with.
constexpr std::array<OperationRow, 30> rows{{
    {number, "", 0},
    {variable, "", 0},
    {element, "", 0},
    {to_real, "", 1, 0, OperationResult::real},
    {conditional, "?", 3, 1},
    {logical_or, "||", 2, 2, logic},
    {logical_and, "&&", 2, 3, logic},
    {equal, "==", 2, 4, truth},
    {not_equal, "!=", 2, 4, truth},
    {less, "<", 2, 4, truth},
    {less_equal, "<=", 2, 4, truth},
    {greater, ">", 2, 4, truth},
    {greater_equal, ">=", 2, 4, truth},
    {add, "+", 2, 5},
    {subtract, "-", 2, 5},
    {multiply, "*", 2, 6},
    {divide, "/", 2, 6, OperationResult::real},
    {floor_divide, "//", 2, 6},
    {modulo, "%", 2, 6},
    {negate, "-", 1, 7},
    {logical_not, "!", 1, 7, logic},
    {min, "min", 2},
    {max, "max", 2},
    {abs, "abs", 1},
    {floor, "floor", 1},
    {exp, "exp", 1, 0, OperationResult::real},
    {log, "log", 1, 0, OperationResult::real},
    {sqrt, "sqrt", 1, 0, OperationResult::real},
    {tanh, "tanh", 1, 0, OperationResult::real},
    {pow, "pow", 2, 0, OperationResult::real},
}};
static_assert(are_in_order(rows, &OperationRow::operation));

}  // namespace
}  // namespace operation_rows_detail

std::span<const OperationRow> operation_rows() {
    return operation_rows_detail::rows;
}

const OperationRow& row_of(Operation operation) {
    return operation_rows_detail::rows[static_cast<std::size_t>(operation)];
}

Expression subexpression(const Expression& expression, std::uint32_t root) {
    std::vector<bool> is_needed(root + 1, false);
    is_needed[root] = true;
    const auto each_operand = [](auto& node, const auto& f) {
        for (std::size_t i = 0; i < row_of(node.operation).operands; ++i) f(node.operand[i]);
        for (auto& index : node.index) f(index);
    };
    for (std::uint32_t i = root + 1; i-- > 0;)
        if (is_needed[i])
            each_operand(expression.nodes[i], [&](std::uint32_t x) { is_needed[x] = true; });
    Expression part = expression;
    part.nodes.clear();
    std::vector<std::uint32_t> number(root + 1);
    for (std::uint32_t i = 0; i <= root; ++i) {
        if (!is_needed[i]) continue;
        number[i] = static_cast<std::uint32_t>(part.nodes.size());
        part.nodes.push_back(expression.nodes[i]);
        each_operand(part.nodes.back(), [&](std::uint32_t& x) { x = number[x]; });
    }
    return part;
}

}  // namespace attn
