#include <arm_neon.h>

#include "core/kernels/entries.hpp"
#include "core/kernels/vector_neon.hpp"

namespace attn::kernels {
namespace {

using Vector [[gnu::vector_size(16)]] = std::uint32_t;

struct Words : PlainWords<Vector> {
    static Vector even(Vector a, Vector b) {
        return Vector(vuzp1q_u32(uint32x4_t(a), uint32x4_t(b)));
    }
    static Vector last_three(Vector a, Vector b) {
        return Vector(vextq_u32(uint32x4_t(a), uint32x4_t(b), 1));
    }
    static std::uint64_t below(Vector a, Vector b) {
        return mask(vcltq_u32(uint32x4_t(a), uint32x4_t(b)));
    }
    static std::uint64_t equal(Vector a, Vector b) {
        return mask(vceqq_u32(uint32x4_t(a), uint32x4_t(b)));
    }

    static Pairs products(Pairs a, Pairs b) {
        return Pairs(vmull_u32(vmovn_u64(uint64x2_t(a)), vmovn_u64(uint64x2_t(b))));
    }
    static Pairs unpack_low(Pairs a, Pairs b) {
        return Pairs(vzip1q_u64(uint64x2_t(a), uint64x2_t(b)));
    }
    static Pairs unpack_high(Pairs a, Pairs b) {
        return Pairs(vzip2q_u64(uint64x2_t(a), uint64x2_t(b)));
    }

private:
    static std::uint64_t mask(uint32x4_t where) {
        static constexpr std::uint32_t lane[] = {1, 2, 4, 8};
        return vaddvq_u32(vandq_u32(where, vld1q_u32(lane)));
    }
};

}  // namespace

extern const EntryTable neon_table;
const EntryTable neon_table = table_of<Float, Double, Words>();

}  // namespace attn::kernels
