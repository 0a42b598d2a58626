// The input of a model: token ids, a text, image or audio arrays, or hidden states.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model/model_asked.hpp"
#include "cli/model/model_files.hpp"
#include "core/model/model.hpp"

namespace attn::cli {

/// Reads the arrays of --pixel-values, --spatial-shapes, --input-values and --input-features.
/// Errors: those of files.
void read_input_arrays(const ModelAsked& asked, ModelInput& input);

/// Reads --token-ids or --text with --text-pair, --token-type-ids, --position-ids,
/// --attention-mask and --hidden-states. Returns a label for each token, if labels are known.
/// Errors: kind usage if a list does not have one entry per token; those of files and tokenizers.
std::vector<std::string> read_tokens(const ModelAsked& asked, ModelFiles& files, ModelInput& input);

/// Requires exactly the arrays `needed`, and token ids or hidden states if `takes_ids`. Errors:
/// kind usage.
void check_input(const ModelAsked& asked, std::span<const std::string_view> needed, bool takes_ids,
                 const ModelInput& input);

}  // namespace attn::cli
