// Disentangled attention: scores of contents with relative positions. He et al. 2021, arXiv
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
    std::optional<NormSpec> norm;  ///< of its rows
    LinearMap key, query;          ///< of its rows, for queries and for keys; absent: no such score
    std::size_t heads = 1;
    double scale = 1;
    std::size_t centre = 0;         ///< the row of position 0
    std::size_t largest = 0;        ///< distances are clamped to [-largest, largest - 1]
    bool clamps_to_length = false;  ///< and to the number of tokens
    /// The distance of a query from a key in rows; null: itself.
    std::function<std::int64_t(std::int64_t distance)> bucket;
};

std::shared_ptr<const ContentBias> disentangled_bias(RelativePositions positions);

/// A convolution over tokens of the block's input, (channels, channels of a group, taps), whose
/// activation is added to the block's output; then the norm.
struct TokenConvolution {
    LinearMap map;  ///< of the rows around a token side by side
    std::size_t taps = 1;
    const Activation* activation = nullptr;
    NormSpec norm;
};

std::shared_ptr<const OtherMixer> block_with_convolution(TransformerBlock block,
                                                         TokenConvolution convolution);

}  // namespace attn
