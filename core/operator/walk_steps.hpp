// Steps between the arrays of `array_names` (result.hpp), for those who walk through a computation.
#pragma once

#include <array>
#include <string_view>

namespace attn {

/// The reference path keeps them where `emit` names them, which only a caller that adds them after
/// `resolve` can ask for.
inline constexpr std::array<std::string_view, 18> step_names{
    "unrotated_queries",            // before the rotary embedding
    "unrotated_keys",               //
    "alibi_scores",                 // after alibi
    "bias_0_scores",                // after the first additive mask
    "bias_1_scores",                // after the second
    "allowed_by_bias_0",            // 1 where this rule by itself allows the key
    "allowed_by_bias_1",            //
    "allowed_by_mask",              //
    "allowed_by_key_padding_mask",  //
    "allowed_by_causal",            //
    "allowed_by_window",            //
    "allowed_by_kv_lengths",        //
    "softmax_shift",                // the row's maximum, the sink included
    "softmax_powers",               // exp(score - shift)
    "sink_power",                   // exp(sink - shift)
    "softmax_total",                // the denominator
    "unmasked_weights",             // mask_method renormalize: the softmax over all keys
    "masked_total",                 // and the sum of the masked weights
};

}  // namespace attn
