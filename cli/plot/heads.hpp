// Some heads of a result, drawn as if it had no others.
#pragma once

#include <cstddef>
#include <vector>

#include "io/write/report.hpp"

namespace attn::cli {

/// Leaves these heads, in this order, of all arrays that have as many heads as the `drawn` ones,
/// and gives those that can still be drawn: an array of fewer heads, as keys that several heads
/// share, cannot. Arrays keep their places. Errors: kind usage, where no drawn array has heads, or
/// not so many.
std::vector<const NamedArray*> keep_heads(io::Report& report,
                                          const std::vector<const NamedArray*>& drawn,
                                          const std::vector<std::size_t>& heads);

}  // namespace attn::cli
