// State-space models: Mamba 2 (Dao and Gu 2024, arXiv 2405.21060).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/model/activation.hpp"
#include "core/model/block.hpp"
#include "core/model/parameter.hpp"

namespace attn {

/// Each head has a state of d x states elements, which decays by exp(time step * rate). Groups of
/// heads share the vectors that write and read the state.
struct StateSpacePart {
    std::size_t heads = 1, d = 0, groups = 1, states = 0, taps = 1;
    LinearMap input;  ///< gates, values, writing and reading vectors, time steps
    Parameter convolution, convolution_bias;  ///< (channels, 1, taps), on all but gates and steps
    const Activation* activation = nullptr;   ///< after the convolution
    std::vector<double> step_bias, rate_log, direct;  ///< per head
    double least_step = 0, largest_step = 0;          ///< largest_step 0: no limit
    NormSpec norm;                                    ///< on each group's gated output
    LinearMap out;
};

std::shared_ptr<const OtherMixer> make_state_space_mixer(StateSpacePart part);

}  // namespace attn
