#include "core/kernels/vector_generic.hpp"

#include "core/kernels/entries.hpp"

namespace attn::kernels {

extern const Entries<float> generic_float32;
const Entries<float> generic_float32 = entries<Float>();

}  // namespace attn::kernels
