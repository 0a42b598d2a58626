#include "core/kernels/vector_avx512.hpp"

#include "core/kernels/entries.hpp"

namespace attn::kernels {

extern const Entries<float> avx512_float32;
const Entries<float> avx512_float32 = entries<Float>();

}  // namespace attn::kernels
