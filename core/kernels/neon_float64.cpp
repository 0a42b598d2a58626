#include "core/kernels/vector_neon.hpp"

#include "core/kernels/entries.hpp"

namespace attn::kernels {

extern const Entries<double> neon_float64;
const Entries<double> neon_float64 = entries<Double>();

}  // namespace attn::kernels
