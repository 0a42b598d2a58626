// Keeps the heads and layers of arrays that are drawn.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/named_array.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// Keeps these heads, in this order, in all arrays with as many heads as the `drawn` ones. Returns
/// the arrays that can still be drawn. An array with fewer heads, such as keys that several heads
/// share, cannot. Arrays keep their addresses. Errors: those of positions_of, for the drawn array
/// of most heads.
std::vector<const NamedArray*> keep_heads(io::Report& report,
                                          const std::vector<const NamedArray*>& drawn,
                                          const std::vector<std::size_t>& heads);

/// Keeps these layers, in this order, in all arrays with an axis "layer", and labels them. Returns
/// their positions before. Errors: kind usage for a layer that it lacks, or if no array of `place`
/// has layers.
std::vector<std::size_t> keep_layers(io::Report& report, const std::vector<std::size_t>& layers,
                                     const std::string& place);

}  // namespace attn::cli
