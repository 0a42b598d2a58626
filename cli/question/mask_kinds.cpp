#include "cli/question/operands.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace attn::cli {
namespace {

bool is_0_or_1(const io::NumberArray& array) {
    return std::ranges::all_of(array.values, [](double value) { return value == 0 || value == 1; });
}

}  // namespace

void MaskKinds::take(const OperandRow& rule, io::NumberArray read, const io::InputFile* file) {
    if (file == nullptr && layout_ != nullptr) {
        const nlohmann::json names = io::member(*layout_, "boolean");
        read.boolean = std::ranges::find(names, rule.key) != names.end();
    }
    operands_.is_boolean[rule] = read.boolean;
    if (!read.boolean)
        taken_.push_back({&rule, file != nullptr ? file->name : std::string(), is_0_or_1(read)});
    operands_[rule] = std::move(read.values);
}

void MaskKinds::resolve() {
    const std::optional<MaskKind> kind = request_.mask_kind;
    const bool has_boolean = has_boolean_mask(operands_.is_boolean),
               has_mask = !taken_.empty() || has_boolean;
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
            operands_.is_boolean[*mask.rule] = true;
        else if (std::ranges::count(operands_[*mask.rule].in<double>(), 1.0) != 0)
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
