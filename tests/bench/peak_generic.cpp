#include "core/kernels/vector_generic.hpp"
#include "tests/bench/peak_loop.hpp"

namespace attn::bench {

const Peak generic_peak{"generic", multiply_add<kernels::Float>};

}  // namespace attn::bench
