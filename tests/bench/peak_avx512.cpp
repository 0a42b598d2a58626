#include "core/kernels/vector_avx512.hpp"
#include "tests/bench/peak_loop.hpp"

namespace attn::bench {

const Peak avx512_peak{"avx512", multiply_add<kernels::Float>};

}  // namespace attn::bench
