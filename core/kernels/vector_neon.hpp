// Vectors of 16 bytes by arm64's Advanced SIMD. See vector_generic.hpp for what each operation
// means.
#pragma once

#include <arm_neon.h>

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

/// `is_paired`: products are of pairs of bfloat16, which need FEAT_BF16.
template <bool is_paired>
struct FloatOf {
    using Float = FloatOf;
    using Scalar = float;
    static constexpr bool paired = is_paired;
    static constexpr std::size_t lanes = 4;
    static constexpr std::size_t tile_vectors = 4, tile_rows = 6;
    static constexpr bool fuses = true;
    float32x4_t v;

    static Float load(const float* p) { return {vld1q_f32(p)}; }
    static Float load_first(const float* p, std::size_t count) {
        float all[lanes] = {};
        for (std::size_t i = 0; i < count; ++i) all[i] = p[i];
        return load(all);
    }
    static Float set(float x) { return {vdupq_n_f32(x)}; }
    void store(float* p) const { vst1q_f32(p, v); }
    void store_once(float* p) const { store(p); }
    void store_first(float* p, std::size_t count) const {
        float all[lanes];
        store(all);
        for (std::size_t i = 0; i < lanes; ++i)
            if (i < count) p[i] = all[i];
    }
    static void finish_stores() {}

    static Float add(Float a, Float b) { return {vaddq_f32(a.v, b.v)}; }
    static Float sub(Float a, Float b) { return {vsubq_f32(a.v, b.v)}; }
    static Float mul(Float a, Float b) { return {vmulq_f32(a.v, b.v)}; }
    static Float div(Float a, Float b) { return {vdivq_f32(a.v, b.v)}; }
    static Float accumulate(Float sum, Float a, Float b) {
        if constexpr (paired)
            asm("bfdot %0.4s, %1.8h, %2.8h" : "+w"(sum.v) : "w"(a.v), "w"(b.v));
        else
            asm("fmla %0.4s, %1.4s, %2.4s" : "+w"(sum.v) : "w"(a.v), "w"(b.v));
        return sum;
    }
    /// Numbers and those after them, rounded, as pairs of neighbours.
    static Float narrowed(Float first, Float second) {
        return {vreinterpretq_f32_u16(vcombine_u16(upper_halves(first), upper_halves(second)))};
    }
    /// Pairs of the same lane.
    static Float pair(Float first, Float second) {
        return {vreinterpretq_f32_u32(
            vorrq_u32(vmovl_u16(upper_halves(first)), vshll_n_u16(upper_halves(second), 16)))};
    }
    static Float fma(Float a, Float b, Float c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
    static Float max(Float a, Float b) { return {vbslq_f32(vcgtq_f32(a.v, b.v), a.v, b.v)}; }
    static Float abs(Float a) { return {vabsq_f32(a.v)}; }
    static Float unit_power_of_eighths(Float rounded) {
        const uint8x16x2_t bytes = {{vreinterpretq_u8_f32(vld1q_f32(powers_of_eighths)),
                                     vreinterpretq_u8_f32(vld1q_f32(powers_of_eighths + 4))}};
        // Element i's bytes are 4 i to 4 i + 3.
        const uint32x4_t element = vandq_u32(vreinterpretq_u32_f32(rounded.v), vdupq_n_u32(7));
        const uint32x4_t indices =
            vmlaq_u32(vdupq_n_u32(0x03020100), element, vdupq_n_u32(0x04040404));
        return {vreinterpretq_f32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_u32(indices)))};
    }
    static Float scale(Float a, Float e) {
        const uint32x4_t power = vshlq_n_u32(vshrq_n_u32(biased(e), 3), 23);
        const uint32x4_t tiny = vcltq_f32(e.v, vdupq_n_f32(-125));
        const float32x4_t scaled = vmulq_f32(a.v, vreinterpretq_f32_u32(power));
        return {vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(scaled), tiny))};
    }
    static bool any_above(Float a, Float b) { return vmaxvq_u32(vcgtq_f32(a.v, b.v)) != 0; }
    static Float where_above(Float a, Float b, Float yes, Float no) {
        return {vbslq_f32(vcgtq_f32(a.v, b.v), yes.v, no.v)};
    }
    static Float where(std::uint64_t bits, Float yes, Float no) {
        static constexpr std::uint32_t lane[lanes] = {1, 2, 4, 8};
        const uint32x4_t set = vdupq_n_u32(static_cast<std::uint32_t>(bits));
        return {vbslq_f32(vtstq_u32(set, vld1q_u32(lane)), yes.v, no.v)};
    }

    static void transpose(Float (&r)[lanes]) {
        const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(r[0].v, r[1].v));
        const float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(r[0].v, r[1].v));
        const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(r[2].v, r[3].v));
        const float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(r[2].v, r[3].v));
        r[0].v = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
        r[1].v = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
        r[2].v = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
        r[3].v = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
    }

private:
    /// Rounded to bfloat16.
    static uint16x4_t upper_halves(Float a) {
        uint16x4_t rounded;
        asm("bfcvtn %0.4h, %1.4s" : "=w"(rounded) : "w"(a.v));
        return rounded;
    }
    /// The low bits hold 8 (e + 127).
    static uint32x4_t biased(Float e) {
        return vreinterpretq_u32_f32(vaddq_f32(e.v, vdupq_n_f32(0x1.8p20f + 127)));
    }
};
using Float = FloatOf<false>;

struct Double {
    using Scalar = double;
    static constexpr std::size_t lanes = 2;
    static constexpr std::size_t tile_vectors = 4, tile_rows = 6;
    static constexpr bool fuses = true;
    float64x2_t v;

    static Double load(const double* p) { return {vld1q_f64(p)}; }
    static Double load_first(const double* p, std::size_t count) {
        double all[lanes] = {};
        for (std::size_t i = 0; i < count; ++i) all[i] = p[i];
        return load(all);
    }
    static Double set(double x) { return {vdupq_n_f64(x)}; }
    void store(double* p) const { vst1q_f64(p, v); }
    void store_once(double* p) const { store(p); }
    void store_first(double* p, std::size_t count) const {
        double all[lanes];
        store(all);
        for (std::size_t i = 0; i < lanes; ++i)
            if (i < count) p[i] = all[i];
    }
    static void finish_stores() {}

    static Double add(Double a, Double b) { return {vaddq_f64(a.v, b.v)}; }
    static Double sub(Double a, Double b) { return {vsubq_f64(a.v, b.v)}; }
    static Double mul(Double a, Double b) { return {vmulq_f64(a.v, b.v)}; }
    static Double div(Double a, Double b) { return {vdivq_f64(a.v, b.v)}; }
    static Double accumulate(Double sum, Double a, Double b) {
        asm("fmla %0.2d, %1.2d, %2.2d" : "+w"(sum.v) : "w"(a.v), "w"(b.v));
        return sum;
    }
    static Double fma(Double a, Double b, Double c) { return {vfmaq_f64(c.v, a.v, b.v)}; }
    static Double max(Double a, Double b) { return {vbslq_f64(vcgtq_f64(a.v, b.v), a.v, b.v)}; }
    static Double abs(Double a) { return {vabsq_f64(a.v)}; }
    static Double scale(Double a, Double e) {
        const float64x2_t biased = vaddq_f64(e.v, vdupq_n_f64(0x1.8p52 + 1023));
        const uint64x2_t power = vshlq_n_u64(vreinterpretq_u64_f64(biased), 52);
        const uint64x2_t tiny = vcltq_f64(e.v, vdupq_n_f64(-1021));
        const float64x2_t scaled = vmulq_f64(a.v, vreinterpretq_f64_u64(power));
        return {vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(scaled), tiny))};
    }
    static bool any_above(Double a, Double b) {
        const uint64x2_t above = vcgtq_f64(a.v, b.v);
        return (vgetq_lane_u64(above, 0) | vgetq_lane_u64(above, 1)) != 0;
    }
    static Double where_above(Double a, Double b, Double yes, Double no) {
        return {vbslq_f64(vcgtq_f64(a.v, b.v), yes.v, no.v)};
    }
    static Double where(std::uint64_t bits, Double yes, Double no) {
        static constexpr std::uint64_t lane[lanes] = {1, 2};
        return {vbslq_f64(vtstq_u64(vdupq_n_u64(bits), vld1q_u64(lane)), yes.v, no.v)};
    }

    static void transpose(Double (&r)[lanes]) {
        const float64x2_t a = r[0].v;
        r[0].v = vtrn1q_f64(a, r[1].v);
        r[1].v = vtrn2q_f64(a, r[1].v);
    }
};

}  // namespace
}  // namespace attn::kernels
