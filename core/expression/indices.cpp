// Whether a formula takes only elements that its arrays have.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/expression/rows.hpp"
#include "core/expression/values.hpp"

namespace attn {
namespace {

/// One value of a formula without scores, which takes only what it needs: the operand of && and
/// the branch of a condition that decide are not both read.
class Scan {
public:
    Scan(std::string_view key, const Expression& expression, const ExpressionSizes& sizes)
        : key_(key), expression_(expression), sizes_(sizes) {}

    void check(std::size_t b, std::size_t h, std::size_t query, std::size_t k) {
        row_ = {b, h, query};
        k_ = k;
        at(static_cast<std::uint32_t>(expression_.nodes.size() - 1));
    }

private:
    /// Nothing where a score or a weight decides; then all that may be read is.
    std::optional<double> at(std::uint32_t index) {
        const ExpressionNode& node = expression_.nodes[index];
        const auto operand = [&](std::size_t i) { return at(node.operand[i]); };
        switch (node.operation) {
            case Operation::number: return node.number;
            case Operation::variable: return variable(node.variable);
            case Operation::element: return element(node);
            case Operation::to_real: return operand(0);
            case Operation::conditional: {
                const auto condition = operand(0);
                if (condition) return operand(*condition != 0 ? 1 : 2);
                operand(1);
                operand(2);
                return {};
            }
            case Operation::logical_and:
            case Operation::logical_or: {
                const bool decides = node.operation == Operation::logical_or;
                const auto left = operand(0);
                if (left && (*left != 0) == decides) return decides ? 1 : 0;
                const auto right = operand(1);
                return left ? right : std::nullopt;
            }
            default: break;
        }
        std::optional<double> x, y;
        for (std::size_t i = 0; i < row_of(node.operation).operands; ++i) {
            y = operand(i);
            if (i == 0) x = y;
            if (!y) x = y;
        }
        if (!x || !y) return {};
        double value = 0;
        with_operation<double>(node.operation, [&](const auto& f) { value = f(*x, *y); });
        return value;
    }

    std::optional<double> variable(Variable name) const {
        if (name == Variable::score || name == Variable::p) return {};
        return value_of(name, sizes_, row_.batch, row_.head, row_.query, k_);
    }

    std::optional<double> element(const ExpressionNode& node) {
        const Array<double>& array = *expression_.arrays[node.array];
        const std::string& name = expression_.array_names[node.array];
        std::size_t flat = 0;
        for (std::size_t axis = 0; axis < node.index.size(); ++axis) {
            const std::optional<double> index = at(node.index[axis]);
            const std::size_t size = array.shape(axis);
            if (!index)
                refuse("an index of ", name, " that depends on a score; expected one of positions");
            if (!(*index >= 0 && *index < static_cast<double>(size)))
                refuse("index ", shortest(*index), " of ", name, ", which has ", size,
                       size == 1 ? " element" : " elements",
                       node.index.size() == 1 ? "" : concat(" along axis ", axis),
                       ", for b = ", row_.batch, ", h = ", row_.head, ", query ", row_.query,
                       ", key ", k_, "; expected 0 to ", size - 1, ", or a condition before it");
            flat = flat * size + static_cast<std::size_t>(*index);
        }
        return array.data()[flat];
    }

    static std::string shortest(double integer) {
        return concat(static_cast<std::int64_t>(std::clamp(integer, -0x1p62, 0x1p62)));
    }

    template <class... Parts>
    [[noreturn]] void refuse(const Parts&... parts) const {
        throw SettingError(ErrorKind::shape, std::string(key_), parts...);
    }

    std::string_view key_;
    const Expression& expression_;
    const ExpressionSizes& sizes_;
    ExpressionRow row_{};
    std::size_t k_ = 0;
};

/// Whether the bounds of every index are within its array, and so every index.
bool has_safe_indices(const Expression& expression, const ExpressionSizes& sizes) {
    return holds_everywhere(expression, sizes, [&](const std::vector<NumberRange>& ranges) {
        for (const ExpressionNode& node : expression.nodes)
            for (std::size_t axis = 0; axis < node.index.size(); ++axis) {
                const std::size_t size = expression.arrays[node.array]->shape(axis);
                const NumberRange& range = ranges[node.index[axis]];
                if (range.nan || range.low < 0 || range.high >= static_cast<double>(size))
                    return false;
            }
        return true;
    });
}

}  // namespace

void check_indices(std::string_view key, const Expression& expression,
                   const ExpressionSizes& sizes) {
    if (has_safe_indices(expression, sizes)) return;
    const auto count = [&](std::size_t of_all, std::initializer_list<Variable> variables) {
        return std::ranges::any_of(
                   variables, [&](Variable one) { return (expression.uses() & bit_of(one)) != 0; })
                   ? of_all
                   : 1;
    };
    const std::size_t keys = count(sizes.kv_len, {Variable::k, Variable::kpos}),
                      queries = count(sizes.q_len, {Variable::q, Variable::qpos});
    const bool moves = sizes.offset.values().size() != 1 && queries != 1;
    Scan scan(key, expression, sizes);
    for (std::size_t b = 0; b < (moves ? sizes.batch : count(sizes.batch, {Variable::b})); ++b)
        for (std::size_t h = 0; h < count(sizes.heads, {Variable::h}); ++h)
            for (std::size_t q = 0; q < queries; ++q)
                for (std::size_t k = 0; k < keys; ++k) scan.check(b, h, q, k);
}

}  // namespace attn
