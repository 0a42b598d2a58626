// What Gemma 3n and 4 add to a block: inputs of each layer, and several streams (AltUp).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/model/activation.hpp"
#include "core/model/block.hpp"
#include "core/model/model.hpp"
#include "core/model/parameter.hpp"

namespace attn {

/// A layer's own input: its columns of a table of tokens, and a projection of the embedding.
struct LayerInput {
    Parameter table;  ///< (vocabulary, layers * width)
    std::size_t first = 0, width = 0;
    bool first_if_beyond = false;  ///< ids beyond the table take its row 0
    LinearMap projection;          ///< of the embedding, to `width`
    NormSpec projection_norm;
    LinearMap gate, out;  ///< out(activation(gate x) * input)
    const Activation* activation = nullptr;
    NormSpec out_norm;
};

/// After a block: x + what the layer's input adds, if there is one, times `scale`.
std::shared_ptr<const OtherMixer> make_layer_input(std::optional<LayerInput> part, double scale);

/// A block on several streams, one of which it computes. Source: Baykal et al. 2023, AltUp.
struct StreamsBlock {
    std::size_t streams = 1, active = 0;
    NormSpec router_norm;
    LinearMap router, prediction, correction;
    std::vector<double> output_scale;  ///< on what the layer's input is added to; empty: 1
    NormSpec attention_norm, attention_post_norm, ffn_norm, ffn_post_norm;
    LinearMap left, right;  ///< LAuReL
    NormSpec left_right_norm;
    AttentionPart attention;
    FeedForward ffn;
    LayerInput input;
};

std::shared_ptr<const OtherMixer> make_streams_block(StreamsBlock part);

/// The embedding as stream 0, and its projections of the same root mean square as the others.
std::shared_ptr<const HiddenStage> make_streams(std::vector<LinearMap> projections);

/// The mean of the streams, projected in the same way.
std::shared_ptr<const HiddenStage> make_mean_of_streams(std::vector<LinearMap> projections);

/// z with a share p of the normal distribution below it.
double normal_quantile(double p);

}  // namespace attn
