// A model with an encoder and a decoder.
#pragma once

#include "core/model/model.hpp"

namespace attn {

/// Runs all blocks of the encoder on `input`, then the decoder on `decoder_ids`, which attends to
/// the encoder's last hidden state. The arrays of both are recorded. Errors: those of run_model.
ModelResult run_encoder_decoder(const Compute& compute, ModelSpec encoder, const ModelSpec& decoder,
                                ModelInput input, std::vector<std::uint64_t> decoder_ids,
                                const ModelRequest& encoder_request, const ModelRequest& request,
                                Dtype dtype);

}  // namespace attn
