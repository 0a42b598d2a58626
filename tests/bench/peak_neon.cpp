#include "core/kernels/vector_neon.hpp"
#include "tests/bench/peak_loop.hpp"

namespace attn::bench {

const Peak neon_peak{"neon", multiply_add<kernels::Float>};

}  // namespace attn::bench
