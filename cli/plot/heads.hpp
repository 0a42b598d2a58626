// Selects some heads of a result, which is then drawn as if it had no others.
#pragma once

#include <cstddef>
#include <vector>

#include "io/write/report.hpp"

namespace attn::cli {

/// Keeps these heads, in this order, in all arrays with as many heads as the `drawn` ones. Returns
/// the arrays that can still be drawn. An array with fewer heads, such as keys that several heads
/// share, cannot. Arrays keep their addresses. Errors: kind usage if no drawn array has heads, or
/// not that many.
std::vector<const NamedArray*> keep_heads(io::Report& report,
                                          const std::vector<const NamedArray*>& drawn,
                                          const std::vector<std::size_t>& heads);

}  // namespace attn::cli
