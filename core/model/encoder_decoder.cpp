#include "core/model/encoder_decoder.hpp"

#include <iterator>
#include <utility>

namespace attn {

ModelResult run_encoder_decoder(const Compute& compute, ModelSpec encoder, const ModelSpec& decoder,
                                ModelInput input, std::vector<std::uint64_t> decoder_ids,
                                const ModelRequest& encoder_request, const ModelRequest& request,
                                Dtype dtype) {
    encoder.head = nullptr;  // which is the decoder's
    ModelRequest of_encoder = encoder_request;
    of_encoder.generate = 0;
    of_encoder.run_layers = encoder.layers;
    of_encoder.arrays.requires_head = false;
    std::vector<bool> valid = input.valid;
    ModelResult first = run_model(compute, encoder, std::move(input), of_encoder, dtype);
    ModelInput decoder_input;
    decoder_input.ids = std::move(decoder_ids);
    decoder_input.encoder = &first.last;
    decoder_input.encoder_valid = std::move(valid);
    ModelResult result = run_model(compute, decoder, std::move(decoder_input), request, dtype);
    result.arrays.insert(result.arrays.begin(), std::make_move_iterator(first.arrays.begin()),
                         std::make_move_iterator(first.arrays.end()));
    result.attentions.insert(result.attentions.begin(),
                             std::make_move_iterator(first.attentions.begin()),
                             std::make_move_iterator(first.attentions.end()));
    return result;
}

}  // namespace attn
