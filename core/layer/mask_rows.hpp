// All mask rules: a table of operands and settings, in the order in which the rules are applied.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"

namespace attn {

struct Operands;

struct Masks {
    Mask rules;                     ///< all boolean masks
    std::vector<Broadcast> biases;  ///< additive masks; -Infinity masks
};

struct MaskRow {
    std::string_view key;  ///< the key of the operand or setting
    ArrayId allowed;       ///< the array that holds where this rule alone allows a key
    bool (*is_active)(const Plan& plan);
    /// Adds the rule of an active row. Moves from the operand that it uses, and adds nothing if
    /// that is absent.
    void (*add)(Masks& masks, const MaskRow& row, const Plan& plan, Operands& operands);
};

std::span<const MaskRow> mask_rows();

Masks take_masks(const Plan& plan, Operands& operands);

/// The rules that follow from settings alone.
Mask settings_mask(const Plan& plan);

/// Keys of the operands that are added to scores, in the order of adding.
std::vector<std::string> additive_masks(const OperandShapes& operands);

}  // namespace attn
