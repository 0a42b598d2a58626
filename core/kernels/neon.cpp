#include <arm_neon.h>

#include "core/kernels/draws.hpp"
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

private:
    static std::uint64_t mask(uint32x4_t where) {
        static constexpr std::uint32_t lane[] = {1, 2, 4, 8};
        return vaddvq_u32(vandq_u32(where, vld1q_u32(lane)));
    }
};

}  // namespace

extern const Entries<float> neon_float32;
extern const Entries<double> neon_float64;
extern const Draws neon_draws;
const Entries<float> neon_float32 = entries<Float>();
const Entries<double> neon_float64 = entries<Double>();
const Draws neon_draws = DrawsBy<Words>::entries();

}  // namespace attn::kernels
