#include "core/layer/mask_rows.hpp"

#include <utility>

#include "core/layer/operands.hpp"

namespace attn {
namespace {

/// Broadcasts to (batch, heads, q_len, kv_len) as `values` do; (batch, kv_len) and (kv_len) apply
/// to keys, for all heads and queries.
Array<double> as_mask(Array<double> values, bool of_keys) {
    if (!of_keys) return values;
    const std::size_t keys = values.shape(values.dimension() - 1);
    values.reshape({values.size() / keys, std::size_t{1}, std::size_t{1}, keys});
    return values;
}

void add_operand(Masks& masks, const MaskRow& row, const Plan& plan, Operands& operands,
                 OperandId mask, bool of_keys) {
    if (operands[mask].dimension() == 0) return;
    Array<double> values = as_mask(operands[mask].take<double>(), of_keys);
    if (plan.operands.is_boolean[mask])
        masks.rules.add(BroadcastRule(std::move(values), plan.keeps_true()), row.allowed);
    else
        masks.biases.emplace_back(std::move(values), 0);
}

// Rules are applied in this order.
constexpr MaskRow all_mask_rows[] = {
    {"mask", "allowed_by_mask", [](const Plan& plan) { return !plan.operands["mask"].empty(); },
     [](Masks& masks, const MaskRow& row, const Plan& plan, Operands& operands) {
         add_operand(masks, row, plan, operands, "mask", false);
     }},
    {"key_padding_mask", "allowed_by_key_padding_mask",
     [](const Plan& plan) { return !plan.operands["key_padding_mask"].empty(); },
     [](Masks& masks, const MaskRow& row, const Plan& plan, Operands& operands) {
         add_operand(masks, row, plan, operands, "key_padding_mask", true);
     }},
    {"causal", "allowed_by_causal", [](const Plan& plan) { return *plan.config.causal; },
     [](Masks& masks, const MaskRow& row, const Plan& plan, Operands&) {
         masks.rules.add(BandRule(-1, 0, plan.offset), row.allowed);
     }},
    {"window", "allowed_by_window", [](const Plan& plan) { return !plan.config.window.empty(); },
     [](Masks& masks, const MaskRow& row, const Plan& plan, Operands&) {
         masks.rules.add(BandRule(plan.config.window[0], plan.config.window[1], plan.offset),
                         row.allowed);
     }},
    {"kv_lengths", "allowed_by_kv_lengths",
     [](const Plan& plan) { return !plan.config.kv_lengths.empty(); },
     [](Masks& masks, const MaskRow& row, const Plan& plan, Operands&) {
         masks.rules.add(LengthRule(plan.config.kv_lengths), row.allowed);
     }},
};
static_assert(same_keys(all_mask_rows, mask_keys));

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
    for (const OperandRow& row : operand_rows)
        if (row.is_mask() && !operands[row].empty() && !operands.is_boolean[row])
            keys.emplace_back(row.key);
    return keys;
}

}  // namespace attn
