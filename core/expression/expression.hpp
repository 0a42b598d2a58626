// Formulas of scores, weights and masks: --score-mod, --prob-mod and --mask-mod. A formula is a
// small tree, which others walk: rows.hpp computes it, range.hpp bounds it, text.hpp prints it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/names.hpp"
#include "core/base/operation.hpp"
#include "core/base/tensor.hpp"

namespace attn {

inline constexpr Names<Variable, 11> variable_names{{{Variable::score, "score"},
                                                     {Variable::p, "p"},
                                                     {Variable::b, "b"},
                                                     {Variable::h, "h"},
                                                     {Variable::q, "q"},
                                                     {Variable::k, "k"},
                                                     {Variable::qpos, "qpos"},
                                                     {Variable::kpos, "kpos"},
                                                     {Variable::q_len, "q_len"},
                                                     {Variable::kv_len, "kv_len"},
                                                     {Variable::heads, "heads"}}};

/// Sets of variables, one bit each.
using Variables = unsigned;
constexpr Variables bit_of(Variable variable) {
    return 1u << static_cast<unsigned>(variable);
}

/// The numbers that an operation gives.
enum class OperationResult {
    as_operands,  ///< integers of integers, else real numbers
    truth,        ///< 0 or 1
    logic,        ///< 0 or 1, of operands that are true or false
    real,
};

struct OperationRow {
    Operation operation;
    std::string_view symbol;  ///< as it is written
    std::size_t operands;
    /// How tightly an operator binds, from 1; 0: a function, or none of either.
    int precedence = 0;
    OperationResult result = OperationResult::as_operands;
};

std::span<const OperationRow> operation_rows();
const OperationRow& row_of(Operation operation);

/// Integers are exact up to 2^53; real numbers are of the computation's type. An operation on both
/// converts the integer, as PyTorch does.
struct ExpressionNode {
    Operation operation;
    bool is_real = false;
    std::array<std::uint32_t, 3> operand{};  ///< indices of earlier nodes, as many as there are
    double number = 0;
    Variable variable{};
    std::uint32_t array = 0;             ///< index in `Expression::arrays`
    std::vector<std::uint32_t> index{};  ///< of an element: a node for each axis
    Variables uses = 0;                  ///< variables that it depends on
};

/// Values of a node lie in it, or are NaN if `nan`.
struct NumberRange {
    double low, high;
    bool nan = false;

    void include(const NumberRange& other) {
        low = std::min(low, other.low);
        high = std::max(high, other.high);
        nan = nan || other.nan;
    }
};

/// An array that formulas may index, by name.
using ExpressionArrays = std::map<std::string, std::shared_ptr<const Array<double>>, std::less<>>;
std::shared_ptr<const Array<double>> array_of(const std::vector<std::size_t>& shape,
                                              const std::vector<double>& numbers);

/// A formula; empty without nodes. The last node is the root, and operands come before it.
struct Expression {
    std::string text;
    std::vector<ExpressionNode> nodes;
    std::vector<std::shared_ptr<const Array<double>>> arrays;
    std::vector<std::string> array_names;
    std::vector<NumberRange> array_bounds;
    static constexpr std::size_t part = 32;
    std::vector<std::vector<NumberRange>> part_bounds;  ///< of every `part` elements of an array

    explicit operator bool() const { return !nodes.empty(); }
    Variables uses() const { return nodes.empty() ? 0 : nodes.back().uses; }
};

/// A formula, and the setting that it comes from.
struct NamedFormula {
    std::string_view key;
    Expression formula;
};

/// Limits that no formula of a person reaches.
inline constexpr std::size_t longest_expression = 4096, max_nodes = 512, deepest_expression = 64;

/// Reads a formula, of which `given` is the variable that it starts from, score or p; without one a
/// mask is read. Arrays named qpos, (batch, queries), with q, the offset of each batch entry, and
/// kpos, (batch, keys), are what these variables are. Errors: SettingError of `key` with the
/// column, what was found and what was expected.
Expression parse_expression(std::string_view key, std::string_view text,
                            std::optional<Variable> given, const ExpressionArrays& arrays);

/// Whether an array may have the name: letters, digits and _, and no variable or function.
bool is_name_of_array(std::string_view name);

/// The formula of a node.
Expression subexpression(const Expression& expression, std::uint32_t root);

}  // namespace attn
