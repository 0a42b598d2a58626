#include "core/kernels/vector_generic.hpp"

#include "core/kernels/tile_attention.hpp"

namespace attn::kernels {

extern const Kernel generic_kernel;
const Kernel generic_kernel{"generic", entries<Float>(), entries<Double>()};

}  // namespace attn::kernels
