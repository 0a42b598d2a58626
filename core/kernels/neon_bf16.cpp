#include "core/kernels/tile_attention.hpp"
#include "core/kernels/vector_neon.hpp"

namespace attn::kernels {

extern const PairTable neon_bf16_table;
const PairTable neon_bf16_table{attend<FloatOf<true>>};

}  // namespace attn::kernels
