// Everything that can block a key: a table of operands and settings, in the order in which their
// rules are asked.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"

namespace attn {

class Quotes;
struct Operands;

/// The masks of a question.
struct Masks {
    Mask rules;                     ///< all that block without touching a score
    std::vector<Broadcast> biases;  ///< additive masks; -Infinity blocks
};

struct MaskRow {
    std::string_view key;  ///< of the operand or the setting
    ArrayId allowed;       ///< the array that says where this rule by itself allows a key
    bool (*is_active)(const Plan& plan);
    /// Adds the rule of an active row. Moves from the operand that it uses, and adds nothing where
    /// that is absent.
    void (*add)(Masks& masks, const MaskRow& row, const Plan& plan, Operands& operands);
    /// What the rule does to one batch entry.
    std::string (*words)(const MaskRow& row, const Plan& plan, std::size_t batch,
                         const Quotes& quotes);
};

std::span<const MaskRow> mask_rows();

/// All that the question asks for.
Masks take_masks(const Plan& plan, Operands& operands);

/// The rules that follow from settings alone.
Mask settings_mask(const Plan& plan);

/// Keys of the operands that are added to scores, in the order of adding.
std::vector<std::string> additive_masks(const Operands& operands);

/// What an additive mask blocks.
std::string additive_mask_words(std::size_t index, const Quotes& quotes);

}  // namespace attn
