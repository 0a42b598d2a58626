#include "core/kernels/tile_attention.hpp"
#include "core/kernels/vector_avx512.hpp"

namespace attn::kernels {

extern const PairTable avx512_bf16_table;
const PairTable avx512_bf16_table{attend<FloatOf<true>>};

}  // namespace attn::kernels
