#include "core/expression/derivative.hpp"

#include <optional>

namespace attn {
namespace {

using Node = std::uint32_t;
/// Nothing where the derivative is 0.
using MaybeNode = std::optional<Node>;

class Derivation {
public:
    explicit Derivation(const Expression& expression) : made_(expression) {
        for (Node i = 0; i < expression.nodes.size(); ++i) slopes_.push_back(slope_of(i));
        const MaybeNode root = slopes_.back();
        made_ = subexpression(made_, root ? *root : number_node(0));
    }

    Expression take() { return std::move(made_); }

private:
    using enum Operation;

    Node add_node(ExpressionNode node) {
        for (std::size_t i = 0; i < row_of(node.operation).operands; ++i)
            node.uses |= made_.nodes[node.operand[i]].uses;
        made_.nodes.push_back(std::move(node));
        return static_cast<Node>(made_.nodes.size() - 1);
    }
    Node number_node(double value) {
        return add_node({.operation = number, .is_real = true, .number = value});
    }
    Node real(Operation operation, Node x, Node y = 0) {
        return add_node({.operation = operation, .is_real = true, .operand = {x, y, 0}});
    }
    Node truth(Operation operation, Node x, Node y) {
        return add_node({.operation = operation, .operand = {x, y, 0}});
    }
    Node choice(Node condition, MaybeNode then, MaybeNode otherwise) {
        const Node zero = then && otherwise ? 0 : number_node(0);
        return add_node({.operation = conditional,
                         .is_real = true,
                         .operand = {condition, then.value_or(zero), otherwise.value_or(zero)}});
    }
    MaybeNode times(MaybeNode slope, Node factor) {
        return slope ? MaybeNode(real(multiply, *slope, factor)) : slope;
    }
    MaybeNode sum(MaybeNode x, MaybeNode y) {
        if (x && y) return real(add, *x, *y);
        return x ? x : y;
    }
    MaybeNode negated(MaybeNode x) { return x ? MaybeNode(real(negate, *x)) : x; }

    /// Of min and max, by which of the two is the value.
    MaybeNode of_extreme(Operation is_first, Node x, Node y, MaybeNode dx, MaybeNode dy) {
        if (!dx && !dy) return {};
        const MaybeNode both = times(sum(dx, dy), number_node(0.5));
        return choice(truth(is_first, x, y), dx, choice(truth(equal, x, y), both, dy));
    }

    /// y x^(y - 1) dx + ln(x) x^y dy. The first is 0 for y = 0, the second for x = 0.
    MaybeNode of_power(Node x, Node y, Node power, MaybeNode dx, MaybeNode dy) {
        const Node zero = number_node(0);
        MaybeNode of_base, of_exponent;
        if (dx) {
            const Node lower = real(pow, x, real(subtract, y, number_node(1)));
            of_base = choice(truth(equal, y, zero), {}, times(dx, real(multiply, y, lower)));
        }
        if (dy)
            of_exponent =
                choice(truth(equal, x, zero), {}, times(dy, real(multiply, real(log, x), power)));
        return sum(of_base, of_exponent);
    }

    MaybeNode slope_of(Node i) {
        const ExpressionNode node = made_.nodes[i];
        if (!node.is_real) return {};
        const auto [x, y, z] = node.operand;
        const std::size_t operands = row_of(node.operation).operands;
        const MaybeNode dx = operands > 0 ? slopes_[x] : MaybeNode(),
                        dy = operands > 1 ? slopes_[y] : MaybeNode();
        switch (node.operation) {
            case variable:
                if (node.variable != Variable::score && node.variable != Variable::p) return {};
                return number_node(1);
            case conditional:
                return dy || slopes_[z] ? MaybeNode(choice(x, dy, slopes_[z])) : MaybeNode();
            case add: return sum(dx, dy);
            case subtract: return sum(dx, negated(dy));
            case multiply: return sum(times(dx, y), times(dy, x));
            case divide: {
                const MaybeNode rest = sum(dx, negated(times(dy, i)));  // i is the quotient
                return rest ? MaybeNode(real(divide, *rest, y)) : rest;
            }
            case modulo: return sum(dx, negated(times(dy, real(floor_divide, x, y))));
            case negate: return negated(dx);
            case min: return of_extreme(less, x, y, dx, dy);
            case max: return of_extreme(greater, x, y, dx, dy);
            case abs: {
                if (!dx) return {};
                const Node zero = number_node(0);
                return choice(truth(greater, x, zero), dx,
                              choice(truth(less, x, zero), negated(dx), {}));
            }
            case exp: return times(dx, i);
            case log: return dx ? MaybeNode(real(divide, *dx, x)) : dx;
            case sqrt:
                return dx ? MaybeNode(real(divide, *dx, real(multiply, number_node(2), i))) : dx;
            case tanh:
                return dx ? times(dx, real(subtract, number_node(1), real(multiply, i, i))) : dx;
            case pow: return of_power(x, y, i, dx, dy);
            default: return {};  // constant between steps, or of numbers that do not vary
        }
    }

    Expression made_;  // the formula's own nodes first
    std::vector<MaybeNode> slopes_;
};

}  // namespace

Expression derivative(const Expression& expression) {
    return Derivation(expression).take();
}

}  // namespace attn
