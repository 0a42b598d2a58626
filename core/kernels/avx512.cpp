#include "core/kernels/vector_avx512.hpp"

#include "core/kernels/tile_attention.hpp"

namespace attn::kernels {

extern const Kernel avx512_kernel;
const Kernel avx512_kernel{"avx512", entries<Float>(), entries<Double>()};

}  // namespace attn::kernels
