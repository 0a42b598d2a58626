// Masks of formulas: --mask-mod.
#pragma once

#include "core/expression/rows.hpp"
#include "core/operator/mask.hpp"

namespace attn {

/// Where a formula lets queries attend.
class ExpressionRule : public MaskRule {
public:
    ExpressionRule(Expression expression, ExpressionSizes sizes)
        : expression_(std::move(expression)), sizes_(std::move(sizes)) {}
    bool allows(std::size_t batch, std::size_t head, std::size_t query,
                std::size_t key) const override;
    Coverage cover(const Block& block) const override;
    void block_unseen(const Block& block, std::size_t first_lane,
                      std::uint64_t* seen) const override;

private:
    Expression expression_;
    ExpressionSizes sizes_;
};

/// Adds the rules of a mask to others: bands of q - k where the formula, or what && joins, is one.
void add_expression(Mask& mask, const Expression& expression, const ExpressionSizes& sizes,
                    ArrayId allowed);

}  // namespace attn
