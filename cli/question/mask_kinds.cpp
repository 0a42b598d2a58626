#include "cli/question/mask_kinds.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "io/read/input_formats.hpp"

namespace attn::cli {
namespace {

bool holds_1(const Array<double>& array) {
    return std::find(array.begin(), array.end(), 1.0) != array.end();
}

bool is_0_or_1(const io::NumberArray& array) {
    return std::all_of(array.values.begin(), array.values.end(),
                       [](double value) { return value == 0 || value == 1; });
}

}  // namespace

void MaskKinds::take(const OperandSpec& rule, io::NumberArray read, const io::InputFile* file) {
    const Taken mask{&rule, file != nullptr ? file->name : std::string()};
    const bool has_booleans = file == nullptr || file->format->booleans;
    if (!has_booleans || read.integers) check_polarity(read, mask);
    operands_.*rule.mask->is_boolean = read.boolean;
    if (!read.boolean && is_0_or_1(read)) taken_.push_back(mask);
    operands_.*rule.mask->values = std::move(read.values);
}

std::vector<std::string> MaskKinds::resolve() {
    std::vector<std::string> notes;
    if (operands_.mask_is_boolean || operands_.key_padding_mask_is_boolean) return notes;
    for (const Taken& mask : taken_)
        if (request_.settings.mask_true)
            operands_.*mask.rule->mask->is_boolean = true;
        else if (holds_1(operands_.*mask.rule->mask->values))
            notes.push_back(place_of_mask(mask) +
                            " holds 0 and 1, which are added to the scores; --mask-true keep or "
                            "drop takes them for a boolean mask");
    return notes;
}

std::string MaskKinds::place_of_mask(const Taken& mask) const {
    return mask.file.empty() ? location_of(request_, mask.rule->key) : mask.file;
}

void MaskKinds::check_polarity(const io::NumberArray& read, const Taken& mask) const {
    if (request_.settings.mask_true) return;
    if (holds_1(read.values) && !read.boolean && is_0_or_1(read))
        throw Error(ErrorKind::usage, place_of_mask(mask),
                    "a mask of 0 and 1, which may be boolean or additive; expected --mask-true "
                    "keep|drop, or booleans (json, npy)");
}

}  // namespace attn::cli
