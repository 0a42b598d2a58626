// Masks of 0 and 1; see numeric_masks.hpp.
#include "cli/request/numeric_masks.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"

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

void NumericMasks::take(const OperandRule& rule, io::NumberArray read, bool cannot_say) {
    if (cannot_say || read.integers) check_polarity(read, rule);
    operands_.*rule.mask->is_boolean = read.boolean;
    if (!read.boolean && is_0_or_1(read)) taken_.push_back(&rule);
    operands_.*rule.mask->values = std::move(read.values);
}

void NumericMasks::settle() {
    if (operands_.mask_is_boolean || operands_.key_padding_mask_is_boolean) return;
    for (const OperandRule* rule : taken_)
        if (request_.settings.mask_true)
            operands_.*rule->mask->is_boolean = true;
        else if (holds_1(operands_.*rule->mask->values))
            request_.notes.push_back(place_of(request_, rule->key) +
                                     " holds 0 and 1, which are added to the scores; --mask-true "
                                     "keep or drop takes them for a boolean mask");
}

void NumericMasks::check_polarity(const io::NumberArray& read, const OperandRule& rule) const {
    if (request_.settings.mask_true) return;
    if (holds_1(read.values) && !read.boolean && is_0_or_1(read))
        throw Error(ErrorKind::usage, place_of(request_, rule.key),
                    "a mask of 0 and 1, which may be boolean or additive; expected mask_true "
                    "keep or drop beside it, or booleans (json, npy)");
}

}  // namespace attn::cli
