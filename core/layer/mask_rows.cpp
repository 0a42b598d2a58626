#include "core/layer/mask_rows.hpp"

#include <utility>

#include "core/layer/operands.hpp"
#include "core/operator/expression_rule.hpp"

namespace attn {
namespace {

template <std::size_t which>
constexpr OperandId mask_operand = *mask_operands[which];

/// The row of a mask that is an operand.
template <std::size_t which>
constexpr MaskRow row_of_operand() {
    constexpr std::string_view key = mask_operands[which]->key, prefix = "allowed_by_";
    const auto allowed = std::ranges::find_if(all_arrays, [&](const ArrayRow& row) {
        return row.name.starts_with(prefix) && row.name.substr(prefix.size()) == key;
    });
    if (allowed == all_arrays.end()) throw std::logic_error("no array of allowed keys");
    return {key, ArrayId(static_cast<std::size_t>(allowed - all_arrays.begin())),
            [](const Plan& plan) { return !plan.operands[mask_operand<which>].empty(); },
            [](Masks& masks, const MaskRow& row, const Plan& plan, Operands& operands) {
                constexpr OperandId mask = mask_operand<which>;
                if (operands[mask].dimension() == 0) return;
                Array<double> values = full_mask(mask, operands[mask].take<double>());
                if (plan.operands.is_boolean[mask])
                    masks.rules.add(BroadcastRule(std::move(values), plan.keeps_true()),
                                    row.allowed);
                else
                    masks.biases.emplace_back(std::move(values), 0);
            }};
}

// Rules are applied in this order.
constexpr auto all_mask_rows = []<std::size_t... which>(std::index_sequence<which...>) {
    return std::to_array<MaskRow>(
        {row_of_operand<which>()...,
         {"causal", "allowed_by_causal", [](const Plan& plan) { return plan.has_causal_rule(); },
          [](Masks& masks, const MaskRow& row, const Plan& plan, Operands&) {
              masks.rules.add(BandRule(-1, 0, plan.offset), row.allowed);
          }},
         {"window", "allowed_by_window", [](const Plan& plan) { return plan.has_window_rule(); },
          [](Masks& masks, const MaskRow& row, const Plan& plan, Operands&) {
              masks.rules.add(BandRule(plan.config.window[0], plan.config.window[1], plan.offset),
                              row.allowed);
          }},
         {"kv_lengths", "allowed_by_kv_lengths",
          [](const Plan& plan) { return !plan.config.kv_lengths.empty(); },
          [](Masks& masks, const MaskRow& row, const Plan& plan, Operands&) {
              masks.rules.add(LengthRule(plan.config.kv_lengths), row.allowed);
          }},
         {"mask_mod", "allowed_by_formulas",
          [](const Plan& plan) { return !plan.mask_formulas.empty(); },
          [](Masks& masks, const MaskRow& row, const Plan& plan, Operands&) {
              for (const NamedFormula& mask : plan.mask_formulas)
                  add_expression(masks.rules, mask.formula, plan.expression_sizes(), row.allowed);
          }},
         {"top_k", "allowed_by_top_k",
          [](const Plan& plan) { return plan.config.top_k.has_value(); },
          [](Masks&, const MaskRow&, const Plan&, Operands&) {}}});  // by scores, not by a rule
}
(std::make_index_sequence<mask_operands.size()>());

}  // namespace

std::span<const MaskRow> mask_rows() {
    return all_mask_rows;
}

Masks take_masks(const Plan& plan, Operands& operands) {
    Masks masks;
    for (const MaskRow& row : all_mask_rows)
        if (row.is_active(plan)) row.add(masks, row, plan, operands);
    return masks;
}

Mask settings_mask(const Plan& plan) {
    Operands none;
    return take_masks(plan, none).rules;
}

std::vector<std::string> additive_masks(const OperandShapes& operands) {
    std::vector<std::string> keys;
    for (const OperandRow* const mask : mask_operands)
        if (!operands[*mask].empty() && !operands.is_boolean[*mask]) keys.emplace_back(mask->key);
    return keys;
}

}  // namespace attn
