#include "core/expression/range.hpp"

#include "core/expression/values.hpp"

namespace attn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr NumberRange anything{-infinity, infinity, true};

/// The largest part of an array that is searched for its bounds.
constexpr std::size_t max_elements = 1024;

class Bounder {
public:
    Bounder(const Expression& expression, const ExpressionSizes& sizes, const Block& block,
            const UncertainValue& given)
        : expression_(expression), sizes_(sizes), block_(block), given_(given) {}

    std::vector<NumberRange> bounds() {
        ranges_.reserve(expression_.nodes.size());
        for (const ExpressionNode& node : expression_.nodes) {
            NumberRange range = of(node);
            // Rounding keeps the order of numbers, so that the bounds round as the values do.
            if (node.is_real && sizes_.in_float32)
                range = {static_cast<float>(range.low), static_cast<float>(range.high), range.nan};
            ranges_.push_back(node.is_real && given_.unit != 0 ? widened(node, range) : range);
        }
        return std::move(ranges_);
    }

private:
    /// By the rounding of a number that is not known to be exact.
    NumberRange widened(const ExpressionNode& node, const NumberRange& range) const {
        const bool is_exact =
            node.operation == Operation::variable ||
            (range.low == range.high && range.low == static_cast<float>(range.low));
        if (is_exact || range.nan) return range;
        return {range.low - given_.unit * std::abs(range.low),
                range.high + given_.unit * std::abs(range.high)};
    }

    const NumberRange& operand(const ExpressionNode& node, std::size_t i) const {
        return ranges_[node.operand[i]];
    }

    NumberRange of(const ExpressionNode& node) const {
        const std::size_t operands = row_of(node.operation).operands;
        if (operands == 0) return of_leaf(node);
        const NumberRange x = operand(node, 0), y = operand(node, operands - 1);
        if (node.operation == Operation::to_real) return x;
        if (node.operation == Operation::conditional) return of_choice(x, operand(node, 1), y);
        if (row_of(node.operation).result == OperationResult::truth ||
            row_of(node.operation).result == OperationResult::logic)
            return of_truth(node.operation, x, y);
        if (x.nan || y.nan) return anything;
        return of_number(node.operation, x, y);
    }

    NumberRange of_leaf(const ExpressionNode& node) const {
        if (node.operation == Operation::number) return {node.number, node.number};
        if (node.operation == Operation::element) return of_element(node);
        if (node.variable == Variable::score || node.variable == Variable::p) return given_.value;
        // Variables grow with the query and the key.
        const auto value = [&](std::size_t query, std::size_t key) {
            return value_of(node.variable, sizes_, block_.batch, block_.head,
                            block_.first_query + query, block_.first_key + key);
        };
        return {value(0, 0), value(block_.queries - 1, block_.keys - 1)};
    }

    /// The least and the largest element in the box of the indices, as far as the array has it.
    NumberRange of_element(const ExpressionNode& node) const {
        const Array<double>& array = *expression_.arrays[node.array];
        std::vector<std::pair<std::size_t, std::size_t>> box;
        box.reserve(node.index.size());
        std::size_t count = 1;
        for (std::size_t axis = 0; axis < node.index.size(); ++axis) {
            const NumberRange& index = ranges_[node.index[axis]];
            const double last = static_cast<double>(array.shape(axis)) - 1;
            if (index.nan) return expression_.array_bounds[node.array];
            const auto first = static_cast<std::size_t>(std::clamp(index.low, 0.0, last));
            const auto end = static_cast<std::size_t>(std::clamp(index.high, 0.0, last)) + 1;
            box.emplace_back(first, end);
            count *= end - first;
        }
        if (count > max_elements) return expression_.array_bounds[node.array];
        NumberRange range{infinity, -infinity};
        const std::size_t run = box.back().second - box.back().first;  // neighbours
        for (std::size_t i = 0; i < count; i += run) {
            std::size_t at = 0, rest = i;
            for (std::size_t axis = box.size(), step = 1; axis-- > 0; step *= array.shape(axis)) {
                const std::size_t length = box[axis].second - box[axis].first;
                at += (box[axis].first + rest % length) * step;
                rest /= length;
            }
            for (const std::size_t end = at + run; at < end;) {
                const bool is_part = at % expression_.part == 0 && end - at >= expression_.part;
                const double x = array.data()[at];
                range.include(is_part ? expression_.part_bounds[node.array][at / expression_.part]
                                      : NumberRange{x, x, std::isnan(x)});
                at += is_part ? expression_.part : 1;
            }
        }
        return range.nan ? anything : range;
    }

    static bool is_true(const NumberRange& x) { return x.nan ? false : x.low > 0 || x.high < 0; }
    static bool is_false(const NumberRange& x) { return !x.nan && x.low == 0 && x.high == 0; }

    static NumberRange of_choice(const NumberRange& condition, const NumberRange& then,
                                 const NumberRange& otherwise) {
        if (is_true(condition)) return then;
        if (is_false(condition)) return otherwise;
        NumberRange either = then;
        either.include(otherwise);
        return either;
    }

    static NumberRange of_truth(Operation operation, NumberRange x, NumberRange y) {
        const auto known = [](bool always, bool never) {
            return NumberRange{always ? 1.0 : 0.0, never ? 0.0 : 1.0};
        };
        switch (operation) {
            case Operation::logical_or:
                return known(is_true(x) || is_true(y), is_false(x) && is_false(y));
            case Operation::logical_and:
                return known(is_true(x) && is_true(y), is_false(x) || is_false(y));
            case Operation::logical_not: return known(is_false(x), is_true(x));
            default: break;
        }
        if (x.nan || y.nan) return known(false, false);
        if (operation == Operation::greater || operation == Operation::greater_equal) {
            std::swap(x, y);
            operation = operation == Operation::greater ? Operation::less : Operation::less_equal;
        }
        const bool apart = x.high < y.low || x.low > y.high;
        const bool same = x.low == x.high && y.low == y.high && x.low == y.low;
        switch (operation) {
            case Operation::equal: return known(same, apart);
            case Operation::not_equal: return known(apart, same);
            case Operation::less: return known(x.high < y.low, x.low >= y.high);
            default: return known(x.high <= y.low, x.low > y.high);
        }
    }

    /// The operation is monotone in each operand, or its extremes are known.
    static NumberRange of_number(Operation operation, NumberRange x, NumberRange y) {
        switch (operation) {
            case Operation::divide:
            case Operation::floor_divide:
                if (y.low <= 0 && y.high >= 0) return anything;
                break;
            case Operation::modulo: return of_modulo(x, y);
            case Operation::abs:
                if (x.low <= 0 && x.high >= 0) return {0, std::max(-x.low, x.high)};
                break;
            case Operation::pow:
                if (x.low <= 0) return anything;
                break;
            default: break;
        }
        NumberRange range{infinity, -infinity};
        with_operation<double>(operation, [&](const auto& value) {
            for (const double left : {x.low, x.high})
                for (const double right : {y.low, y.high}) {
                    const double corner = value(left, right);
                    range.low = std::min(range.low, corner);
                    range.high = std::max(range.high, corner);
                    range.nan = range.nan || std::isnan(corner);
                }
        });
        // An infinity times a 0 between the corners is NaN.
        const bool finite = std::isfinite(x.low) && std::isfinite(x.high) && std::isfinite(y.low) &&
                            std::isfinite(y.high);
        return range.nan || (operation == Operation::multiply && !finite) ? anything : range;
    }

    static NumberRange of_modulo(const NumberRange& x, const NumberRange& y) {
        if (!std::isfinite(x.low) || !std::isfinite(x.high) || (y.low <= 0 && y.high >= 0))
            return anything;
        if (y.low == y.high && floor_quotient(x.low, y.low) == floor_quotient(x.high, y.low))
            return {remainder_of(x.low, y.low), remainder_of(x.high, y.low)};
        return y.low > 0 ? NumberRange{0, y.high} : NumberRange{y.low, 0};
    }

    const Expression& expression_;
    const ExpressionSizes& sizes_;
    const Block& block_;
    const UncertainValue& given_;
    std::vector<NumberRange> ranges_;
};

}  // namespace

double value_of(Variable variable, const ExpressionSizes& sizes, std::size_t batch,
                std::size_t head, std::size_t query, std::size_t key) {
    switch (variable) {
        case Variable::b: return static_cast<double>(batch);
        case Variable::h: return static_cast<double>(head);
        case Variable::q:
        case Variable::qpos: return static_cast<double>(as_signed(query) + sizes.offset.of(batch));
        case Variable::k:
        case Variable::kpos: return static_cast<double>(key);
        case Variable::q_len: return static_cast<double>(sizes.q_len);
        case Variable::kv_len: return static_cast<double>(sizes.kv_len);
        case Variable::heads: return static_cast<double>(sizes.heads);
        case Variable::score:
        case Variable::p: break;  // given
    }
    return 0;
}

std::vector<NumberRange> ranges_of(const Expression& expression, const ExpressionSizes& sizes,
                                   const Block& block, const UncertainValue& given) {
    return Bounder(expression, sizes, block, given).bounds();
}

}  // namespace attn
