#include "core/kernels/vector_neon.hpp"

#include "core/kernels/entries.hpp"

namespace attn::kernels {

extern const Entries<float> neon_float32;
const Entries<float> neon_float32 = entries<Float>();

}  // namespace attn::kernels
