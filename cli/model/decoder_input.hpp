// The input of the decoder of an encoder-decoder model.
#pragma once

#include "cli/args/args.hpp"
#include "cli/model/model_question.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

/// Sets question.decoder_ids from --decoder-ids, or from the start token of the config. Errors:
/// kind usage if the model has no decoder; kind input if the config has no start token.
void read_decoder_ids(const Args& args, const io::OpenModel& model, ModelQuestion& question);

/// Errors: kind input if an id is not in the decoder's vocabulary.
void check_decoder_ids(const Args& args, const io::OpenModel& model, const ModelQuestion& question,
                       std::size_t vocabulary);

}  // namespace attn::cli
