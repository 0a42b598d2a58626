// How the operator computes a part's softmax attention.
#pragma once

#include <string_view>

#include "core/model/block.hpp"
#include "core/model/run_block.hpp"
#include "core/plan/settings.hpp"

namespace attn {

/// A use of an attention part.
struct AttentionUse {
    bool is_cross = false;
    bool has_own_name = false;  ///< its weights are recorded as cross_attention_weights
    std::size_t before = 0;     ///< keys of the encoder before the own ones
    std::size_t layer = 0;      ///< in errors
};

/// Errors: SettingError for a chosen head that a layer of `heads` heads does not have.
void check_heads(const ArrayRequest& wanted, std::size_t heads, std::size_t layer);

/// The settings of the `sdpa` computation, which records the arrays that are wanted. Errors:
/// SettingError for a head that the layer does not have.
Settings attention_settings(const AttentionPart& part, std::string_view kernel,
                            const ArrayRequest& wanted, const AttentionUse& use, Dtype dtype);

}  // namespace attn
