// The input of a model: token ids, a text, image or audio arrays, or hidden states.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/args.hpp"
#include "cli/request/request.hpp"
#include "core/model/model.hpp"
#include "io/tokenizer/tokenizer.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

/// Reads the files that --pixel-values, --spatial-shapes, --input-values and --input-features name,
/// and records their locations. Errors: those of files.
void read_input_arrays(const Args& args, Request& request, ModelInput& input);

/// Reads --token-ids or --text with --text-pair, --token-type-ids, --position-ids,
/// --attention-mask and --hidden-states. Returns a label for each token, if labels are known.
/// Errors: kind usage if a list does not have one entry per token; those of files and tokenizers.
std::vector<std::string> read_tokens(const Args& args, const Request& request,
                                     const std::string& path, const io::ModelFolder& files,
                                     ModelInput& input);

/// Requires exactly the arrays `needed`, and token ids or hidden states if `takes_ids`. Errors:
/// kind usage.
void check_input(const Args& args, const Request& request, std::span<const std::string_view> needed,
                 bool takes_ids, const ModelInput& input);

/// The tokenizer of a model, from its GGUF file or the tokenizer.json of its folder. Errors: kind
/// io if there is none.
io::Tokenizer tokenizer_of(const std::string& path, const io::ModelFolder& files,
                           const io::Access& access);

}  // namespace attn::cli
