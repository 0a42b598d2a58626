// Additions of Gemma 3n and 4 to a block: per-layer inputs, and several streams (AltUp).
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

/// A per-layer input: the layer's columns of an embedding table, and a projection of the embedding.
struct LayerInput {
    Parameter table;  ///< (vocabulary, layers * width)
    std::size_t first = 0, width = 0;
    bool first_if_beyond = false;  ///< ids beyond the table use row 0
    LinearMap projection;          ///< of the embedding, to `width`
    NormSpec projection_norm;
    LinearMap gate, out;  ///< out(activation(gate x) * input)
    const Activation* activation = nullptr;
    NormSpec out_norm;
};

/// After a block: (x + the per-layer term, if any) * scale.
std::shared_ptr<const OtherMixer> make_layer_input(std::optional<LayerInput> part, double scale);

/// A block on several streams that computes only the active one (AltUp, Baykal et al. 2023).
struct StreamsBlock {
    std::size_t streams = 1, active = 0;
    NormSpec router_norm;
    LinearMap router, prediction, correction;
    std::vector<double> output_scale;  ///< on the input of the per-layer term; empty: 1
    NormSpec attention_norm, attention_post_norm, ffn_norm, ffn_post_norm;
    LinearMap left, right;  ///< LAuReL
    NormSpec left_right_norm;
    AttentionPart attention;
    FeedForward ffn;
    LayerInput input;
};

std::shared_ptr<const OtherMixer> make_streams_block(StreamsBlock part);

/// Stream 0 is the embedding. The others are its projections, scaled to the same root mean square.
std::shared_ptr<const HiddenStage> make_streams(std::vector<LinearMap> projections);

/// The mean of the streams after projecting and scaling them likewise.
std::shared_ptr<const HiddenStage> make_mean_of_streams(std::vector<LinearMap> projections);

/// The p-quantile of the standard normal distribution.
double normal_quantile(double p);

}  // namespace attn
