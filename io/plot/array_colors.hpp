// The colours that pictures show each array in.
#pragma once

#include "core/operator/arrays.hpp"

namespace attn::io {

/// Not drawn, in colours from 0 up where no number is negative, in diverging colours, or in
/// diverging colours with cells of -Infinity as masked.
enum class ArrayColors { none, from_zero, diverging, diverging_masked };

constexpr ArrayColors colors_of(ArrayId array) {
    constexpr ArraySet from_zero{"mask",
                                 "masked_weights",
                                 "weights_before_dropout",
                                 "dropout_mask",
                                 "attention_weights",
                                 "attn_mask",
                                 "key_padding_mask"};
    constexpr ArraySet masked{"biased_scores", "masked_scores"};
    if (array.row().from == From::trace || array == "token_ids") return ArrayColors::none;
    if (from_zero.has(array) || array.row().is_statistic()) return ArrayColors::from_zero;
    return masked.has(array) ? ArrayColors::diverging_masked : ArrayColors::diverging;
}

}  // namespace attn::io
