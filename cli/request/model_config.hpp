// The settings that a published model's config.json fixes for its attention layers.
#pragma once

#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

/// Fills in what no flag and no key has set from the members of `path`, a config.json as Hugging
/// Face's transformers writes it: heads, key heads, rotary embedding, window, scale, epsilon of the
/// norms. `layer` is what the names of the weights in `file` show. Dropout is for training and is
/// left off. Errors: kind input, for keys that change, or may change, the numbers in a way that is
/// not computed here.
void apply_model_config(Request& request, const io::ArrayFile& file, const io::ModelLayer& layer,
                        const std::string& path, const nlohmann::json& config);

/// What attn wrote beside parameters or a result: heads, masks and modifiers of the layer that they
/// belong to. `config` is the file's, and null where it has none.
void apply_saved_config(Request& request, const nlohmann::json& config, const std::string& path);

/// What holds for the whole family where neither a flag nor the file said anything: BERT is not
/// causal, llama and neox rotate queries and keys.
void apply_family_defaults(Request& request, io::Family family);

}  // namespace attn::cli
