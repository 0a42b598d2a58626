// A formula as an expression of Python, over arrays that broadcast to (batch, heads, queries,
// keys).
#include "cli/repro/program.hpp"
#include "core/expression/rows.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

class PythonText {
public:
    PythonText(const Expression& expression, const ExpressionSizes& sizes, bool in_torch)
        : expression_(expression), sizes_(sizes), library_(in_torch ? "torch." : "np."),
          as_real_(concat(in_torch ? ".to(" : ".astype(", library_,
                          sizes.in_float32 ? "float32)" : "float64)")) {}

    /// As a condition, an array of booleans.
    std::string truth(std::uint32_t index) const {
        const ExpressionNode& node = expression_.nodes[index];
        const auto operand = [&](std::size_t i) { return truth(node.operand[i]); };
        switch (node.operation) {
            case Operation::logical_and: return concat('(', operand(0), " & ", operand(1), ')');
            case Operation::logical_or: return concat('(', operand(0), " | ", operand(1), ')');
            case Operation::logical_not: return concat('(', operand(0), " == False)");
            default: break;
        }
        const OperationRow& row = row_of(node.operation);
        if (row.result == OperationResult::truth)
            return concat('(', value(node.operand[0]), ' ', row.symbol, ' ', value(node.operand[1]),
                          ')');
        // An array also where it is one number.
        return concat("(0 * j + ", value(index), " != 0)");
    }

    /// As a number.
    std::string value(std::uint32_t index) const {
        const ExpressionNode& node = expression_.nodes[index];
        constexpr Variables of_sizes =
            bit_of(Variable::q_len) | bit_of(Variable::kv_len) | bit_of(Variable::heads);
        if ((node.uses & ~of_sizes) == 0 && node.operation != Operation::element)
            return constant(index);
        const auto operand = [&](std::size_t i) { return value(node.operand[i]); };
        const OperationRow& row = row_of(node.operation);
        switch (node.operation) {
            case Operation::variable: return variable(node.variable);
            case Operation::element: {
                std::string indices;
                for (const std::uint32_t axis : node.index)
                    indices += (indices.empty() ? "" : ", ") + value(axis);
                return concat("of_", expression_.array_names[node.array], '[', indices, ']');
            }
            case Operation::to_real: return concat('(', operand(0), ')', as_real_);
            case Operation::conditional:
                return concat(library_, "where(", truth(node.operand[0]), ", ", operand(1), ", ",
                              operand(2), ')');
            case Operation::min:
            case Operation::max:
                return concat(library_, "where(", operand(0),
                              node.operation == Operation::min ? " < " : " > ", operand(1), ", ",
                              operand(0), ", ", operand(1), ')');
            case Operation::negate: return concat("(-", operand(0), ')');
            case Operation::pow: return concat('(', operand(0), " ** ", operand(1), ')');
            case Operation::abs: return concat("abs(", operand(0), ')');
            case Operation::floor:
                return node.is_real ? concat(library_, "floor(", operand(0), ')') : operand(0);
            default: break;
        }
        if (row.result == OperationResult::truth || row.result == OperationResult::logic)
            return concat('(', truth(index), " * 1)");
        if (row.operands == 1) return concat(library_, row.symbol, '(', operand(0), ')');
        return concat('(', operand(0), ' ', row.symbol, ' ', operand(1), ')');
    }

private:
    std::string constant(std::uint32_t index) const {
        const Expression part = subexpression(expression_, index);
        double number = 0;
        if (part.nodes.back().is_real) {
            compute_row(part, sizes_, {0, 0, 0}, 0, std::span(&number, 1));
        } else {
            number = ranges_of(part, sizes_, {0, 0, 0, 1, 0, 1}).back().low;
        }
        if (std::isinf(number)) return number < 0 ? "-math.inf" : "math.inf";
        return std::isnan(number) ? "math.nan" : io::number_text(number);
    }

    std::string variable(Variable name) const {
        switch (name) {
            case Variable::q:
            case Variable::qpos: return "p";
            case Variable::k:
            case Variable::kpos: return "j";
            case Variable::b: return "entry";
            case Variable::h: return "head";
            case Variable::score: return "score";
            case Variable::p: return "weight";
            case Variable::q_len:
            case Variable::kv_len:
            case Variable::heads: break;  // are constant
        }
        return {};
    }

    const Expression& expression_;
    const ExpressionSizes& sizes_;
    std::string library_, as_real_;
};

}  // namespace

std::string python_formula(const Expression& expression, const Plan& plan, bool in_torch) {
    const ExpressionSizes sizes = plan.expression_sizes();
    const PythonText text(expression, sizes, in_torch);
    const auto root = static_cast<std::uint32_t>(expression.nodes.size() - 1);
    return expression.nodes[root].is_real ? text.value(root) : text.truth(root);
}

}  // namespace attn::cli
