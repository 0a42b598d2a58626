#include "core/kernels/vector_avx2.hpp"

#include "core/kernels/entries.hpp"

namespace attn::kernels {

extern const Entries<float> avx2_float32;
const Entries<float> avx2_float32 = entries<Float>();

}  // namespace attn::kernels
