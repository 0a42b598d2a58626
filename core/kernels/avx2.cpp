#include "core/kernels/vector_avx2.hpp"

#include "core/kernels/tile_attention.hpp"

namespace attn::kernels {

extern const Kernel avx2_kernel;
const Kernel avx2_kernel{"avx2", entries<Float>(), entries<Double>()};

}  // namespace attn::kernels
