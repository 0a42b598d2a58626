#include <immintrin.h>

#include "core/kernels/entries.hpp"
#include "core/kernels/vector_avx512.hpp"

namespace attn::kernels {
namespace {

using Vector [[gnu::vector_size(64)]] = std::uint32_t;

struct Words : PlainWords<Vector> {
    static Vector twisted(Vector word, Vector successor, Vector ahead) {
        const __m512i top = _mm512_set1_epi32(INT32_MIN), one = _mm512_set1_epi32(1);
        const __mmask16 is_odd = _mm512_test_epi32_mask(__m512i(successor), one);
        // The successor except for its top bit.
        const __m512i y = _mm512_ternarylogic_epi32(__m512i(word), __m512i(successor), top, 0xe4);
        const __m512i if_even = __m512i(ahead ^ (Vector(y) >> 1));
        const __m512i matrix = _mm512_set1_epi32(static_cast<int>(0x9908b0df));
        return Vector(_mm512_mask_xor_epi32(if_even, is_odd, if_even, matrix));
    }
    static Vector even(Vector a, Vector b) {
        const __m512i indices =
            _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        return Vector(_mm512_permutex2var_epi32(__m512i(a), indices, __m512i(b)));
    }
    static Vector last_three(Vector a, Vector b) {
        return Vector(_mm512_alignr_epi32(__m512i(b), __m512i(a), 13));
    }
    static std::uint64_t below(Vector a, Vector b) {
        return _mm512_cmplt_epu32_mask(__m512i(a), __m512i(b));
    }
    static std::uint64_t equal(Vector a, Vector b) {
        return _mm512_cmpeq_epi32_mask(__m512i(a), __m512i(b));
    }
    static Pairs products(Pairs a, Pairs b) {
        return Pairs(_mm512_mul_epu32(__m512i(a), __m512i(b)));
    }
    static Pairs unpack_low(Pairs a, Pairs b) {
        return Pairs(_mm512_unpacklo_epi64(__m512i(a), __m512i(b)));
    }
    static Pairs unpack_high(Pairs a, Pairs b) {
        return Pairs(_mm512_unpackhi_epi64(__m512i(a), __m512i(b)));
    }
};

}  // namespace

extern const EntryTable avx512_table;
const EntryTable avx512_table = table_of<Float, Double, Words>();

}  // namespace attn::kernels
