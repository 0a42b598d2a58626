#include <immintrin.h>

#include "core/kernels/entries.hpp"
#include "core/kernels/vector_avx2.hpp"

namespace attn::kernels {
namespace {

using Vector [[gnu::vector_size(32)]] = std::uint32_t;

struct Words : PlainWords<Vector> {
    static Vector even(Vector a, Vector b) {
        const __m256 halves = _mm256_shuffle_ps(__m256(a), __m256(b), 0x88);
        return Vector(_mm256_permute4x64_epi64(__m256i(halves), 0xd8));
    }
    static Vector last_three(Vector a, Vector b) {
        const __m256i middle = _mm256_permute2x128_si256(__m256i(a), __m256i(b), 0x21);
        return Vector(_mm256_alignr_epi8(__m256i(b), middle, 4));
    }
    static std::uint64_t below(Vector a, Vector b) {
        return mask(_mm256_cmpgt_epi32(__m256i(b), __m256i(a)));
    }
    static std::uint64_t equal(Vector a, Vector b) {
        return mask(_mm256_cmpeq_epi32(__m256i(a), __m256i(b)));
    }

    static constexpr std::uint32_t bias = 0x80000000;
    static Pairs products(Pairs a, Pairs b) {
        return Pairs(_mm256_mul_epu32(__m256i(a), __m256i(b)));
    }
    static Pairs unpack_low(Pairs a, Pairs b) {
        return Pairs(_mm256_unpacklo_epi64(__m256i(a), __m256i(b)));
    }
    static Pairs unpack_high(Pairs a, Pairs b) {
        return Pairs(_mm256_unpackhi_epi64(__m256i(a), __m256i(b)));
    }

private:
    static std::uint64_t mask(__m256i where) {
        return static_cast<std::uint32_t>(_mm256_movemask_ps(__m256(where)));
    }
};

}  // namespace

extern const EntryTable avx2_table;
const EntryTable avx2_table = table_of<Float, Double, Words>();

}  // namespace attn::kernels
