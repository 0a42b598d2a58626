#include "core/kernels/vector_avx512.hpp"

#include "core/kernels/entries.hpp"

namespace attn::kernels {

extern const Entries<double> avx512_float64;
const Entries<double> avx512_float64 = entries<Double>();

}  // namespace attn::kernels
