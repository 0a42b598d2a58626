// Layers and operators drawn at random over modes, sizes, masks, caches and settings.
#pragma once

#include "core/layer/operands.hpp"
#include "core/plan/settings.hpp"
#include "tests/support/support.hpp"

namespace attn::test {

struct DrawnLayer {
    Settings settings;  ///< in float32
    Operands operands;  ///< numbers of float32; parameters are given
    std::string words;  ///< what was drawn

    /// The same numbers in this type.
    DrawnLayer in(NumberType dtype) const;
};

/// Of queries and keys: at most 40, or as many as tiles, blocks and splits of keys have.
enum class Lengths { few, of_tiles };

/// The layer of this seed.
DrawnLayer drawn_layer(std::uint32_t seed, Lengths lengths = Lengths::few);

/// The names of all arrays of the question that this kernel records.
std::vector<std::string> arrays_of(const DrawnLayer& layer, const std::string& kernel);

}  // namespace attn::test
