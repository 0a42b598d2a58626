#include "core/kernels/vector_avx2.hpp"
#include "tests/bench/peak_loop.hpp"

namespace attn::bench {

const Peak avx2_peak{"avx2", multiply_add<kernels::Float>};

}  // namespace attn::bench
