#include "cli/question/operands.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

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

bool is_0_or_1(const io::NumberArray& array) {
    return std::ranges::all_of(array.values, [](double value) { return value == 0 || value == 1; });
}

}  // namespace

std::span<const OperandSpec> operand_rules() {
    return rules_of_operands;
}

bool is_operand(std::string_view key, Mode mode) {
    return std::ranges::any_of(rules_of_operands, [&](const OperandSpec& rule) {
        return rule.key == key && (rule.modes & in(mode)) != 0;
    });
}

void MaskKinds::take(const OperandSpec& rule, io::NumberArray read, const io::InputFile* file) {
    if (file == nullptr && layout_ != nullptr) {
        const nlohmann::json names = io::member(*layout_, "boolean");
        read.boolean = std::ranges::find(names, rule.key) != names.end();
    }
    operands_.*rule.mask->is_boolean = read.boolean;
    if (!read.boolean)
        taken_.push_back({&rule, file != nullptr ? file->name : std::string(), is_0_or_1(read)});
    operands_.*rule.mask->values = std::move(read.values);
}

void MaskKinds::resolve() {
    const std::optional<MaskKind> kind = request_.mask_kind;
    const bool has_mask = !taken_.empty() || operands_.mask_is_boolean ||
                          operands_.key_padding_mask_is_boolean,
               has_boolean = operands_.mask_is_boolean || operands_.key_padding_mask_is_boolean;
    if (kind && !has_mask)
        throw setting_error(request_, "mask_kind", "requires --mask or --key-padding-mask");
    if (kind == MaskKind::additive && taken_.empty())
        throw setting_error(
            request_, "mask_kind",
            "the mask is boolean by its type; expected boolean, or no such setting");
    if (kind == MaskKind::additive && request_.settings.mask_true && !has_boolean)
        throw setting_error(request_, "mask_true",
                            "conflicts with --mask-kind additive; expected one of them");
    for (const Taken& mask : taken_) {
        const auto refuse = [&](const char* message) {
            throw Error(ErrorKind::usage, location_of_mask(mask), message);
        };
        if (kind == MaskKind::additive) continue;
        if (kind == MaskKind::boolean && !mask.is_0_or_1)
            refuse("a mask with other numbers than 0 and 1; expected --mask-kind additive");
        if (!mask.is_0_or_1) continue;
        if (kind == MaskKind::boolean || (request_.settings.mask_true && !has_boolean))
            operands_.*mask.rule->mask->is_boolean = true;
        else if (std::ranges::count(operands_.*mask.rule->mask->values, 1.0) != 0)
            refuse(
                has_boolean
                    ? "a mask of 0 and 1 together with a boolean one, which may be boolean or "
                      "additive; expected --mask-kind boolean|additive"
                    : "a mask of 0 and 1, which may be boolean or additive; expected --mask-true "
                      "keep|drop, --mask-kind additive, or booleans (json, npy)");
    }
}

std::string MaskKinds::location_of_mask(const Taken& mask) const {
    return mask.file.empty() ? location_of(request_, mask.rule->key) : mask.file;
}

}  // namespace attn::cli
