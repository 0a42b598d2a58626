#include "core/kernels/vector_avx2.hpp"

#include "core/kernels/entries.hpp"

namespace attn::kernels {

extern const Entries<double> avx2_float64;
const Entries<double> avx2_float64 = entries<Double>();

}  // namespace attn::kernels
