// Vectors of 64 bytes by AVX-512 F, BW, DQ and VL. See vector_generic.hpp for what each operation
// means.
#pragma once

#include <immintrin.h>

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

/// `is_paired`: products are of pairs of bfloat16, which need AVX512-BF16.
template <bool is_paired>
struct FloatOf {
    using Float = FloatOf;
    using Scalar = float;
    static constexpr bool paired = is_paired;
    static constexpr std::size_t lanes = 16;
    static constexpr std::size_t tile_vectors = 4, tile_rows = 6;
    static constexpr bool fuses = true;
    __m512 v;

    static Float load(const float* p) { return {_mm512_loadu_ps(p)}; }
    static Float load_first(const float* p, std::size_t count) {
        return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p)};
    }
    static Float set(float x) { return {_mm512_set1_ps(x)}; }
    void store(float* p) const { _mm512_storeu_ps(p, v); }
    void store_first(float* p, std::size_t count) const {
        _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), v);
    }
    void store_once(float* p) const {
        if (reinterpret_cast<std::uintptr_t>(p) % 64 == 0)
            _mm512_stream_ps(p, v);
        else
            store(p);
    }
    static void finish_stores() { _mm_sfence(); }

    static Float add(Float a, Float b) { return {_mm512_add_ps(a.v, b.v)}; }
    static Float sub(Float a, Float b) { return {_mm512_sub_ps(a.v, b.v)}; }
    static Float mul(Float a, Float b) { return {_mm512_mul_ps(a.v, b.v)}; }
    static Float div(Float a, Float b) { return {_mm512_div_ps(a.v, b.v)}; }
    static Float fma(Float a, Float b, Float c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
    static Float accumulate(Float sum, Float a, Float b) {
        if constexpr (paired)
            asm("vdpbf16ps %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "v"(b.v));
        else
            asm("vfmadd231ps %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "v"(b.v));
        return sum;
    }
    /// Numbers and those after them, rounded, as pairs of neighbours.
    static Float narrowed(Float first, Float second) {
        return {_mm512_castsi512_ps(__m512i(_mm512_cvtne2ps_pbh(second.v, first.v)))};
    }
    /// Pairs of the same lane.
    static Float pair(Float first, Float second) {
        static constexpr std::uint16_t order[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                  21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                  11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
        const __m512i both = _mm512_castps_si512(narrowed(first, second).v);
        return {_mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_loadu_si512(order), both))};
    }
    static Float max(Float a, Float b) { return {_mm512_max_ps(a.v, b.v)}; }
    static Float abs(Float a) { return {_mm512_abs_ps(a.v)}; }
    static Float unit_power_of_eighths(Float rounded) {
        const __m512 table = _mm512_broadcast_f32x8(_mm256_loadu_ps(powers_of_eighths));
        return {_mm512_permutexvar_ps(_mm512_castps_si512(rounded.v), table)};
    }
    static Float scale(Float a, Float e) {
        const __mmask16 normal = _mm512_cmp_ps_mask(e.v, _mm512_set1_ps(-125), _CMP_NLT_UQ);
        return {_mm512_maskz_scalef_ps(normal, a.v, e.v)};
    }
    static bool any_above(Float a, Float b) {
        return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ) != 0;
    }
    static Float where_above(Float a, Float b, Float yes, Float no) {
        return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ), no.v, yes.v)};
    }
    static Float where(std::uint64_t bits, Float yes, Float no) {
        return {_mm512_mask_blend_ps(static_cast<__mmask16>(bits), no.v, yes.v)};
    }

    static void transpose(Float (&r)[lanes]) {
        __m512 t[16];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < 16; i += 2) {
            t[i] = _mm512_unpacklo_ps(r[i].v, r[i + 1].v);
            t[i + 1] = _mm512_unpackhi_ps(r[i].v, r[i + 1].v);
        }
        // u[4g + c]: elements 4 lane + c of the rows 4g to 4g + 3.
        __m512 u[16];
#pragma GCC unroll 16
        for (std::size_t g = 0; g < 16; g += 4) {
            const auto low = [&](std::size_t i) { return _mm512_castps_pd(t[g + i]); };
            u[g] = _mm512_castpd_ps(_mm512_unpacklo_pd(low(0), low(2)));
            u[g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low(0), low(2)));
            u[g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(low(1), low(3)));
            u[g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(low(1), low(3)));
        }
#pragma GCC unroll 16
        for (std::size_t c = 0; c < 4; ++c) {
            const __m512 a = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x88);
            const __m512 b = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xdd);
            const __m512 d = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x88);
            const __m512 e = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xdd);
            r[c].v = _mm512_shuffle_f32x4(a, d, 0x88);
            r[4 + c].v = _mm512_shuffle_f32x4(b, e, 0x88);
            r[8 + c].v = _mm512_shuffle_f32x4(a, d, 0xdd);
            r[12 + c].v = _mm512_shuffle_f32x4(b, e, 0xdd);
        }
    }
};
using Float = FloatOf<false>;

struct Double {
    using Scalar = double;
    static constexpr std::size_t lanes = 8;
    static constexpr std::size_t tile_vectors = 4, tile_rows = 6;
    static constexpr bool fuses = true;
    __m512d v;

    static Double load(const double* p) { return {_mm512_loadu_pd(p)}; }
    static Double load_first(const double* p, std::size_t count) {
        return {_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), p)};
    }
    static Double set(double x) { return {_mm512_set1_pd(x)}; }
    void store(double* p) const { _mm512_storeu_pd(p, v); }
    void store_first(double* p, std::size_t count) const {
        _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << count) - 1), v);
    }
    void store_once(double* p) const {
        if (reinterpret_cast<std::uintptr_t>(p) % 64 == 0)
            _mm512_stream_pd(p, v);
        else
            store(p);
    }
    static void finish_stores() { _mm_sfence(); }

    static Double add(Double a, Double b) { return {_mm512_add_pd(a.v, b.v)}; }
    static Double sub(Double a, Double b) { return {_mm512_sub_pd(a.v, b.v)}; }
    static Double mul(Double a, Double b) { return {_mm512_mul_pd(a.v, b.v)}; }
    static Double div(Double a, Double b) { return {_mm512_div_pd(a.v, b.v)}; }
    static Double fma(Double a, Double b, Double c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
    static Double accumulate(Double sum, Double a, Double b) {
        asm("vfmadd231pd %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "v"(b.v));
        return sum;
    }
    static Double max(Double a, Double b) { return {_mm512_max_pd(a.v, b.v)}; }
    static Double abs(Double a) { return {_mm512_abs_pd(a.v)}; }
    static Double scale(Double a, Double e) {
        const __mmask8 normal = _mm512_cmp_pd_mask(e.v, _mm512_set1_pd(-1021), _CMP_NLT_UQ);
        return {_mm512_maskz_scalef_pd(normal, a.v, e.v)};
    }
    static bool any_above(Double a, Double b) {
        return _mm512_cmp_pd_mask(a.v, b.v, _CMP_GT_OQ) != 0;
    }
    static Double where_above(Double a, Double b, Double yes, Double no) {
        return {_mm512_mask_blend_pd(_mm512_cmp_pd_mask(a.v, b.v, _CMP_GT_OQ), no.v, yes.v)};
    }
    static Double where(std::uint64_t bits, Double yes, Double no) {
        return {_mm512_mask_blend_pd(static_cast<__mmask8>(bits), no.v, yes.v)};
    }

    static void transpose(Double (&r)[lanes]) {
        __m512d t[8];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < 8; i += 2) {
            t[i] = _mm512_unpacklo_pd(r[i].v, r[i + 1].v);
            t[i + 1] = _mm512_unpackhi_pd(r[i].v, r[i + 1].v);
        }
#pragma GCC unroll 16
        for (std::size_t c = 0; c < 2; ++c) {
            const __m512d a = _mm512_shuffle_f64x2(t[c], t[2 + c], 0x88);
            const __m512d b = _mm512_shuffle_f64x2(t[c], t[2 + c], 0xdd);
            const __m512d d = _mm512_shuffle_f64x2(t[4 + c], t[6 + c], 0x88);
            const __m512d e = _mm512_shuffle_f64x2(t[4 + c], t[6 + c], 0xdd);
            r[c].v = _mm512_shuffle_f64x2(a, d, 0x88);
            r[2 + c].v = _mm512_shuffle_f64x2(b, e, 0x88);
            r[4 + c].v = _mm512_shuffle_f64x2(a, d, 0xdd);
            r[6 + c].v = _mm512_shuffle_f64x2(b, e, 0xdd);
        }
    }
};

}  // namespace
}  // namespace attn::kernels
