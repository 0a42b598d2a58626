// Disentangled attention: scores between contents and relative positions. He et al. 2021, arXiv
// 2006.03654.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/model/block.hpp"

namespace attn {

struct RelativePositions {
    Parameter table;               ///< (rows, width)
    std::optional<NormSpec> norm;  ///< on its rows
    LinearMap key, query;  ///< projections of its rows, scored with queries and keys; absent: none
    std::size_t heads = 1;
    double scale = 1;
    std::size_t centre = 0;         ///< row of relative position 0
    std::size_t largest = 0;        ///< distances are clamped to [-largest, largest - 1]
    bool clamps_to_length = false;  ///< also clamps to the number of tokens
    /// Maps a distance between query and key to a distance in rows; null: unchanged.
    std::function<std::int64_t(std::int64_t distance)> bucket;
};

std::shared_ptr<const ContentBias> disentangled_bias(RelativePositions positions);

/// A convolution over the block's input, (output channels, input channels per group, taps). Its
/// activation is added to the block's output, then the norm is applied.
struct TokenConvolution {
    LinearMap map;  ///< of the concatenated rows around a token
    std::size_t taps = 1;
    const Activation* activation = nullptr;
    NormSpec norm;
};

std::shared_ptr<const OtherMixer> block_with_convolution(TransformerBlock block,
                                                         TokenConvolution convolution);

}  // namespace attn
