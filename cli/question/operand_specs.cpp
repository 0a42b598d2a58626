#include "cli/question/operands.hpp"

#include <algorithm>
#include <iterator>

namespace attn::cli {
namespace {

constexpr MaskFields mask_fields{&Operands::mask, &Operands::mask_is_boolean},
    key_padding_fields{&Operands::key_padding_mask, &Operands::key_padding_mask_is_boolean};

constexpr Modes operand_modes = in(Mode::sdpa) | in(Mode::linear), linear_mode = in(Mode::linear),
                softmax_modes = every_mode & ~linear_mode;
constexpr OperandSpec rules_of_operands[] = {
    {"query", operand_modes, true, &Operands::query, nullptr, 2, 4, false, LabelsOf::queries},
    {"key", operand_modes, true, &Operands::key, nullptr, 2, 4, true, LabelsOf::keys},
    {"value", operand_modes, true, &Operands::value, nullptr, 2, 4, true},
    {"context", in(Mode::cross), true, &Operands::context, nullptr, 2, 3, false, LabelsOf::keys},
    {"past_key", softmax_modes, false, &Operands::past_key, nullptr, 2, 4, true},
    {"past_value", softmax_modes, false, &Operands::past_value, nullptr, 2, 4, true},
    {"past_state", linear_mode, false, &Operands::past_state, nullptr, 2, 4, true},
    {"decay", linear_mode, false, &Operands::decay, nullptr, 1, 4, true, LabelsOf::none,
     &LinearSettings::decay},
    {"beta", linear_mode, false, &Operands::beta, nullptr, 1, 4, true, LabelsOf::none,
     &LinearSettings::beta},
    {"mask", softmax_modes, false, nullptr, &mask_fields, 1, 4, true},
    {"key_padding_mask", softmax_modes, false, nullptr, &key_padding_fields, 1, 2, true},
};

}  // namespace

std::span<const OperandSpec> operand_rules() {
    return rules_of_operands;
}

bool is_operand(std::string_view key, Mode mode) {
    return std::any_of(
        std::begin(rules_of_operands), std::end(rules_of_operands),
        [&](const OperandSpec& rule) { return rule.key == key && (rule.modes & in(mode)) != 0; });
}

}  // namespace attn::cli
