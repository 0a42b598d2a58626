#include "core/kernels/vector_neon.hpp"

#include "core/kernels/tile_attention.hpp"

namespace attn::kernels {

extern const Kernel neon_kernel;
const Kernel neon_kernel{"neon", entries<Float>(), entries<Double>()};

}  // namespace attn::kernels
