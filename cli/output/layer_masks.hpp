// The masked cells of a model's arrays, as tables and pictures mark them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/operator/mask.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// The mask of one attention of a model.
struct LayerMask {
    std::string part;  ///< the prefix of its arrays: "encoder_", "decoder_", "cross_" or none
    std::size_t layer = 0;
    std::size_t heads = 1, kv_len = 0;
    std::shared_ptr<const Mask> mask;
};

/// The masked cells of the arrays of these attentions: of an array of one layer, or stacked along
/// an axis "layer", whose entries are `layers`. The arrays have `chosen` heads; empty: all.
io::MaskedOf masked_in_layers(std::vector<LayerMask> attentions, std::vector<std::size_t> layers,
                              std::vector<std::size_t> chosen);

}  // namespace attn::cli
