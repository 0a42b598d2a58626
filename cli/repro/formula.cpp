// A formula as an expression of Python over arrays that broadcast to (batch, heads, queries, keys),
// as one of C for one query and key, and as operators of ONNX.
#include "cli/repro/program.hpp"
#include "core/expression/rows.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

bool is_truth(const OperationRow& row) {
    return row.result == OperationResult::truth || row.result == OperationResult::logic;
}

std::uint32_t root_of(const Expression& expression) {
    return static_cast<std::uint32_t>(expression.nodes.size() - 1);
}

enum class Form { numpy, torch, c };

/// In C, integers are of type int or double, and real numbers of type real.
class FormulaText {
public:
    FormulaText(const Expression& expression, const ExpressionSizes& sizes, Form form)
        : expression_(expression), sizes_(sizes), in_c_(form == Form::c),
          library_(in_c_                 ? ""
                   : form == Form::torch ? "torch."
                                         : "np."),
          as_real_(concat(form == Form::torch ? ".to(" : ".astype(", library_,
                          sizes.in_float32 ? "float32)" : "float64)")) {}

    /// As a condition: in Python an array of booleans.
    std::string truth(std::uint32_t index) const {
        if (in_c_) return value(index);
        const ExpressionNode& node = expression_.nodes[index];
        // An array also where it is one number.
        if (is_constant(node)) return concat("(0 * j + ", constant(index), " != 0)");
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
        return concat("(0 * j + ", value(index), " != 0)");
    }

    /// As a number.
    std::string value(std::uint32_t index) const {
        const ExpressionNode& node = expression_.nodes[index];
        if (is_constant(node)) return constant(index);
        const auto operand = [&](std::size_t i) { return value(node.operand[i]); };
        const OperationRow& row = row_of(node.operation);
        switch (node.operation) {
            case Operation::variable: return variable(node.variable);
            case Operation::element: return element(node);
            case Operation::negate: return concat("(-", operand(0), ')');
            case Operation::to_real:
                return in_c_ ? concat("(real)(", operand(0), ')')
                             : concat('(', operand(0), ')', as_real_);
            case Operation::conditional:
                return in_c_ ? concat('(', operand(0), " ? ", operand(1), " : ", operand(2), ')')
                             : concat(library_, "where(", truth(node.operand[0]), ", ", operand(1),
                                      ", ", operand(2), ')');
            default: break;
        }
        const std::string second = row.operands == 2 ? operand(1) : "";
        if (in_c_) return in_c(node, row, operand(0), second);
        switch (node.operation) {
            case Operation::min:
            case Operation::max:
                return concat(library_, "where(", operand(0),
                              node.operation == Operation::min ? " < " : " > ", second, ", ",
                              operand(0), ", ", second, ')');
            case Operation::pow: return concat('(', operand(0), " ** ", second, ')');
            case Operation::abs: return concat("abs(", operand(0), ')');
            case Operation::floor_divide:
            case Operation::modulo:
                if (node.is_real || !may_be_zero(node.operand[1])) break;
                return concat("(1.0 * ", operand(0), ' ', row.symbol, " (1.0 * ", second, "))");
            case Operation::floor:
                return node.is_real ? concat(library_, "floor(", operand(0), ')') : operand(0);
            default: break;
        }
        if (is_truth(row)) return concat('(', truth(index), " * 1)");
        if (row.operands == 1) return concat(library_, row.symbol, '(', operand(0), ')');
        return concat('(', operand(0), ' ', row.symbol, ' ', second, ')');
    }

private:
    static bool is_constant(const ExpressionNode& node) {
        constexpr Variables of_sizes =
            bit_of(Variable::q_len) | bit_of(Variable::kv_len) | bit_of(Variable::heads);
        return (node.uses & ~of_sizes) == 0 && node.operation != Operation::element;
    }

    /// The divisor of an integer; one that may be 0 divides as real numbers do.
    bool may_be_zero(std::uint32_t index) const {
        if (!is_constant(expression_.nodes[index])) return true;
        return constant(index) == "0";
    }

    static std::string in_c(const ExpressionNode& node, const OperationRow& row,
                            const std::string& x, const std::string& y) {
        std::string_view function;
        switch (node.operation) {
            case Operation::logical_not: return concat("(!", x, ')');
            case Operation::floor_divide: function = "floor_quotient"; break;
            case Operation::modulo: function = "remainder_of"; break;
            case Operation::min: function = "fmin"; break;
            case Operation::max: function = "fmax"; break;
            case Operation::abs:
                return concat(node.is_real ? "(real)fabs(" : "fabs((double)", x, ')');
            default:
                if (row.precedence != 0) return concat('(', x, ' ', row.symbol, ' ', y, ')');
                function = row.symbol;
        }
        return concat(node.is_real ? "(real)" : "", function, '(', x, y.empty() ? "" : ", ", y,
                      ')');
    }

    std::string element(const ExpressionNode& node) const {
        std::string indices;
        for (const std::uint32_t axis : node.index)
            indices += in_c_ ? concat("[(int)(", value(axis), ")]")
                             : concat(indices.empty() ? "[" : ", ", value(axis));
        return concat("of_", expression_.array_names[node.array], indices, in_c_ ? "" : "]");
    }

    std::string constant(std::uint32_t index) const {
        Expression part = subexpression(expression_, index);
        const bool is_real = part.nodes.back().is_real;
        if (!is_real) {
            const std::uint32_t root = root_of(part);
            part.nodes.push_back(
                {.operation = Operation::to_real, .is_real = true, .operand = {root}});
        }
        double number = 0;
        compute_row(part, sizes_, {0, 0, 0}, 0, std::span(&number, 1));
        std::string text = io::number_text(number);
        if (!std::isfinite(number)) {
            text = std::isnan(number) ? "NAN" : "INFINITY";
            if (!in_c_) text = std::isnan(number) ? "math.nan" : "math.inf";
            if (number < 0) text = "-" + text;
        }
        // In C, sums of numbers below this one fit in an int.
        const bool is_long = std::abs(number) > 0x1p20 && text.find_first_of(".eNA") == text.npos;
        return !in_c_ ? text : concat(is_real ? "(real)" : "", text, is_long ? ".0" : "");
    }

    std::string variable(Variable name) const {
        switch (name) {
            case Variable::q:
            case Variable::qpos: return "p";
            case Variable::k:
            case Variable::kpos: return "j";
            case Variable::b: return in_c_ ? "b" : "entry";
            case Variable::h: return in_c_ ? "h" : "head";
            case Variable::score: return in_c_ ? "scores[j]" : "score";
            case Variable::p: return in_c_ ? "weights[j]" : "weight";
            case Variable::q_len:
            case Variable::kv_len:
            case Variable::heads: break;  // are constant
        }
        return {};
    }

    const Expression& expression_;
    const ExpressionSizes& sizes_;
    bool in_c_;
    std::string library_, as_real_;
};

/// What depends on a score or a weight as operators of real numbers and booleans; NumPy computes
/// the rest, which the model takes.
class OnnxSteps {
public:
    OnnxSteps(const Expression& expression, const ExpressionSizes& sizes, const std::string& given)
        : expression_(expression), python_(expression, sizes, Form::numpy), given_(given),
          is_float_(sizes.in_float32) {}

    OnnxFormula take() {
        const auto root = static_cast<std::uint32_t>(expression_.nodes.size() - 1);
        formula_.result = named(root, false);
        if ((expression_.uses() & of_values) == 0)
            formula_.result = step("Expand", {formula_.result, step("Shape", {given_})});
        return std::move(formula_);
    }

private:
    static constexpr Variables of_values = bit_of(Variable::score) | bit_of(Variable::p);

    std::string named(std::uint32_t index, bool as_truth) {
        const ExpressionNode& node = expression_.nodes[index];
        if ((node.uses & of_values) == 0) return input(index, as_truth);
        if (node.operation == Operation::variable) return given_;
        const OperationRow& row = row_of(node.operation);
        std::vector<std::string> x;
        for (std::size_t i = 0; i < row.operands; ++i)
            x.push_back(named(node.operand[i], row.result == OperationResult::logic ||
                                                   (row.operands == 3 && i == 0)));
        std::string value = applied(row, x);
        if (is_truth(row) == as_truth) return value;
        return step(as_truth    ? "Cast <to = 9>"
                    : is_float_ ? "Cast <to = 1>"
                                : "Cast <to = 11>",
                    {value});
    }

    std::string applied(const OperationRow& row, const std::vector<std::string>& x) {
        constexpr std::string_view operators[] = {"Where",       "Or",      "And",
                                                  "Equal",       "",        "Less",
                                                  "LessOrEqual", "Greater", "GreaterOrEqual",
                                                  "Add",         "Sub",     "Mul",
                                                  "Div",         "",        "",
                                                  "Neg",         "Not",     "Min",
                                                  "Max",         "Abs",     "Floor",
                                                  "Exp",         "Log",     "Sqrt",
                                                  "Tanh",        "Pow"};
        switch (row.operation) {
            case Operation::to_real: return x[0];
            case Operation::not_equal: return step("Not", {step("Equal", x)});
            case Operation::floor_divide: return step("Floor", {step("Div", x)});
            case Operation::modulo:
                return step("Mod <fmod = 1>",
                            {step("Add", {step("Mod <fmod = 1>", x), x[1]}), x[1]});
            default:
                return step(operators[static_cast<std::size_t>(row.operation) -
                                      static_cast<std::size_t>(Operation::conditional)],
                            x);
        }
    }

    std::string input(std::uint32_t index, bool as_truth) {
        std::string name = concat(given_, "_input_", index);
        formula_.inputs += " " + name;
        formula_.arrays +=
            concat(formula_.arrays.empty() ? "" : "\n", name, " = np.array(",
                   as_truth ? python_.truth(index) : python_.value(index), ", ndmin=1, dtype=",
                   as_truth    ? "bool"
                   : is_float_ ? "np.float32"
                               : "np.float64",
                   ')');
        return name;
    }

    std::string step(std::string_view operation, const std::vector<std::string>& operands) {
        std::string name = concat(given_, '_', ++steps_);
        std::string list;
        for (const std::string& operand : operands) list += (list.empty() ? "" : ", ") + operand;
        formula_.lines +=
            concat(formula_.lines.empty() ? "" : "\n", name, " = ", operation, " (", list, ')');
        return name;
    }

    const Expression& expression_;
    FormulaText python_;
    std::string given_;
    bool is_float_;
    std::size_t steps_ = 0;
    OnnxFormula formula_;
};

}  // namespace

std::string formula_text(const Expression& expression, const Plan& plan,
                         std::string_view language) {
    const ExpressionSizes sizes = plan.expression_sizes();
    const Form form = language == "c" ? Form::c : language == "torch" ? Form::torch : Form::numpy;
    const FormulaText text(expression, sizes, form);
    const std::uint32_t root = root_of(expression);
    return expression.nodes[root].is_real ? text.value(root) : text.truth(root);
}

OnnxFormula onnx_formula(const Expression& expression, const Plan& plan, const std::string& given) {
    const ExpressionSizes sizes = plan.expression_sizes();
    return OnnxSteps(expression, sizes, given).take();
}

}  // namespace attn::cli
