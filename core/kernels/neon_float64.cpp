#include "core/kernels/vector_neon.hpp"

#include "core/kernels/tile_attention.hpp"

namespace attn::kernels {

extern const Entries<double> neon_float64;
const Entries<double> neon_float64 = entries<Double>();

}  // namespace attn::kernels
