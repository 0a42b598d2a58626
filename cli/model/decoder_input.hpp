// What the decoder of a model with an encoder starts from.
#pragma once

#include "cli/args/args.hpp"
#include "cli/model/model_question.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

/// Fills in question.decoder_ids: --decoder-ids, or the token that the config names. Errors: kind
/// usage if the model has no decoder; kind input if the config names no token.
void read_decoder_ids(const Args& args, const io::OpenModel& model, ModelQuestion& question);

}  // namespace attn::cli
