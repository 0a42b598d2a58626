#include "core/operator/expression_rule.hpp"

#include <optional>

namespace attn {
namespace {

/// query + key + constant, with factors.
struct Affine {
    std::int64_t query = 0, key = 0, constant = 0;
};

/// Small enough that sums of a formula's nodes stay in 64 bits.
constexpr double largest_term = 0x1p40;

std::optional<Affine> affine(const Expression& expression, std::uint32_t index,
                             const ExpressionSizes& sizes) {
    const ExpressionNode& node = expression.nodes[index];
    if (node.is_real) return {};
    const auto operand = [&](std::size_t i) { return affine(expression, node.operand[i], sizes); };
    switch (node.operation) {
        case Operation::number:
            if (node.number > largest_term) return {};
            return Affine{0, 0, static_cast<std::int64_t>(node.number)};
        case Operation::variable:
            switch (node.variable) {
                case Variable::q: return Affine{1, 0, 0};
                case Variable::k: return Affine{0, 1, 0};
                case Variable::q_len: return Affine{0, 0, as_signed(sizes.q_len)};
                case Variable::kv_len: return Affine{0, 0, as_signed(sizes.kv_len)};
                default: return {};
            }
        case Operation::add:
        case Operation::subtract: {
            const auto left = operand(0), right = operand(1);
            if (!left || !right) return {};
            const std::int64_t sign = node.operation == Operation::add ? 1 : -1;
            return Affine{left->query + sign * right->query, left->key + sign * right->key,
                          left->constant + sign * right->constant};
        }
        case Operation::negate: {
            const auto x = operand(0);
            if (!x) return {};
            return Affine{-x->query, -x->key, -x->constant};
        }
        default: return {};
    }
}

/// Adds the band where x >= 0, if it is one: key - query is at most, or at least, a number.
bool add_band(Mask& mask, const Affine& x, const ExpressionSizes& sizes, ArrayId allowed) {
    if (x.query + x.key != 0 || (x.key != 1 && x.key != -1)) return false;
    // key - position >= -constant, or <= constant: a band of the position moved by it.
    std::vector<std::int64_t> moved = sizes.offset.values();
    for (std::int64_t& offset : moved) offset += x.key > 0 ? -x.constant : x.constant;
    const std::int64_t left = x.key > 0 ? 0 : -1, right = x.key > 0 ? -1 : 0;
    mask.add(
        BandRule(left, right,
                 moved.size() == 1 ? PositionOffset(moved[0]) : PositionOffset(std::move(moved))),
        allowed);
    return true;
}

/// x <= y as y - x >= 0, and so on; nothing for == and !=, and for other operations.
std::optional<Affine> difference(const Expression& e, const ExpressionNode& node,
                                 const ExpressionSizes& sizes) {
    const Operation operation = node.operation;
    const bool is_less = operation == Operation::less || operation == Operation::less_equal;
    if (!is_less && operation != Operation::greater && operation != Operation::greater_equal)
        return {};
    const auto low = affine(e, node.operand[is_less ? 0 : 1], sizes),
               high = affine(e, node.operand[is_less ? 1 : 0], sizes);
    if (!low || !high) return {};
    const bool is_strict = operation == Operation::less || operation == Operation::greater;
    return Affine{high->query - low->query, high->key - low->key,
                  high->constant - low->constant - (is_strict ? 1 : 0)};
}

void add_rules(Mask& mask, const Expression& expression, std::uint32_t root,
               const ExpressionSizes& sizes, ArrayId allowed) {
    const ExpressionNode& node = expression.nodes[root];
    if (node.operation == Operation::logical_and) {
        for (std::size_t i = 0; i < 2; ++i)
            add_rules(mask, expression, node.operand[i], sizes, allowed);
        return;
    }
    const std::optional<Affine> band = difference(expression, node, sizes);
    if (band && add_band(mask, *band, sizes, allowed)) return;
    mask.add(ExpressionRule(subexpression(expression, root), sizes), allowed);
}

}  // namespace

void add_expression(Mask& mask, const Expression& expression, const ExpressionSizes& sizes,
                    ArrayId allowed) {
    add_rules(mask, expression, static_cast<std::uint32_t>(expression.nodes.size() - 1), sizes,
              allowed);
}

bool ExpressionRule::allows(std::size_t batch, std::size_t head, std::size_t query,
                            std::size_t key) const {
    bool allowed = false;
    compute_row(expression_, sizes_, {batch, head, query}, key, std::span(&allowed, 1));
    return allowed;
}

Coverage ExpressionRule::cover(const Block& block) const {
    const NumberRange root = ranges_of(expression_, sizes_, block).back();
    if (root.nan) return Coverage::some;
    if (root.low == 0 && root.high == 0) return Coverage::none;
    return root.low > 0 || root.high < 0 ? Coverage::all : Coverage::some;
}

void ExpressionRule::block_unseen(const Block& block, std::size_t first_lane,
                                  std::uint64_t* seen) const {
    const std::unique_ptr<bool[]> allowed(new bool[block.keys]);
    for (std::size_t q = 0; q < block.queries; ++q) {
        compute_row(expression_, sizes_, {block.batch, block.head, block.first_query + q},
                    block.first_key, std::span(allowed.get(), block.keys));
        const std::uint64_t lane = std::uint64_t{1} << (first_lane + q);
        for (std::size_t k = 0; k < block.keys; ++k)
            if (!allowed[k]) seen[k] &= ~lane;
    }
}

}  // namespace attn
