#include "core/kernels/vector_generic.hpp"

#include "core/kernels/entries.hpp"

namespace attn::kernels {

extern const Entries<double> generic_float64;
const Entries<double> generic_float64 = entries<Double>();

}  // namespace attn::kernels
