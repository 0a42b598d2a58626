// What a model is given: token ids, a text, arrays that it sees or hears, or hidden states.
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
/// and notes their locations. Errors: those of files.
void read_input_arrays(const Args& args, Request& request, ModelInput& input);

/// Reads --token-ids or --text with --text-pair, --token-type-ids, --position-ids,
/// --attention-mask and --hidden-states. Returns a label for each token, if they are known. Errors:
/// kind usage for lists of another length than the tokens; those of files and tokenizers.
std::vector<std::string> read_tokens(const Args& args, const Request& request,
                                     const std::string& path, const io::ModelFolder& files,
                                     ModelInput& input);

/// Errors: kind usage if the input is not what the model needs: the arrays `needed`, and token ids
/// if `takes_ids`.
void check_input(const Args& args, const Request& request, std::span<const std::string_view> needed,
                 bool takes_ids, const ModelInput& input);

/// The tokenizer of a model: of its GGUF file, or the tokenizer.json of its folder. Errors: kind io
/// if there is none.
io::Tokenizer tokenizer_of(const std::string& path, const io::ModelFolder& files,
                           const io::Access& access);

}  // namespace attn::cli
