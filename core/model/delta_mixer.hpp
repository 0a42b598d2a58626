// Mixers with a short causal convolution: gated delta rule (Qwen3-Next, Kimi), convolution (LFM2).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/model/activation.hpp"
#include "core/model/block.hpp"
#include "core/model/parameter.hpp"

namespace attn {

/// A depthwise causal convolution.
struct ShortConvolution {
    std::vector<Parameter> weights;  ///< (channels, 1, taps) each, concatenated
    Parameter bias = nullptr;
    std::size_t taps = 1;
    const Activation* activation = nullptr;  ///< null: none
};

/// Linear attention by the delta rule with decay; see core/linear/linear.hpp.
struct DeltaPart {
    std::size_t key_heads = 1, value_heads = 1, d_k = 0, d_v = 0;
    /// Their concatenated outputs are queries, keys and values, then gates if `gate` is empty.
    std::vector<LinearMap> inputs;
    std::vector<std::size_t> input_order;  ///< source column of each output; empty: unchanged
    ShortConvolution convolution;          ///< of queries, keys and values
    std::vector<LinearMap> gate, decay;    ///< applied one after the other
    LinearMap beta;                        ///< if `decay` is empty: beta, then the decay's input
    std::vector<std::size_t> beta_order;
    double beta_factor = 1;
    /// decay_log per head; decay_bias per head or per key column.
    std::vector<double> decay_log, decay_bias;
    std::optional<double> least_decay;  ///< factor on a sigmoid; null: -softplus
    NormSpec norm;                      ///< on each head's output
    bool gate_is_silu = true;
    LinearMap out;
};

std::shared_ptr<const OtherMixer> make_delta_mixer(DeltaPart part);

/// [b, c, u] = input x; out (c * convolution(b * u)).
struct ShortConvolutionPart {
    LinearMap input, out;
    ShortConvolution convolution;
};

std::shared_ptr<const OtherMixer> make_convolution_mixer(ShortConvolutionPart part);

}  // namespace attn
