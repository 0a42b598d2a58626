// Vectors of 32 bytes by AVX2 and FMA. See vector_generic.hpp for what each operation means.
#pragma once

#include <immintrin.h>

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

struct Float {
    using Scalar = float;
    static constexpr std::size_t lanes = 8;
    static constexpr std::size_t tile_vectors = 3, tile_rows = 4;
    static constexpr bool fuses = true;
    __m256 v;

    static Float load(const float* p) { return {_mm256_loadu_ps(p)}; }
    static Float load_first(const float* p, std::size_t count) {
        return {_mm256_maskload_ps(p, first(count))};
    }
    static Float set(float x) { return {_mm256_set1_ps(x)}; }
    void store(float* p) const { _mm256_storeu_ps(p, v); }
    void store_once(float* p) const { store(p); }
    void store_first(float* p, std::size_t count) const { _mm256_maskstore_ps(p, first(count), v); }
    static void finish_stores() {}

    static Float add(Float a, Float b) { return {_mm256_add_ps(a.v, b.v)}; }
    static Float sub(Float a, Float b) { return {_mm256_sub_ps(a.v, b.v)}; }
    static Float mul(Float a, Float b) { return {_mm256_mul_ps(a.v, b.v)}; }
    static Float div(Float a, Float b) { return {_mm256_div_ps(a.v, b.v)}; }
    static Float fma(Float a, Float b, Float c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
    static Float accumulate(Float sum, Float a, Float b) {
        asm("vfmadd231ps %2, %1, %0" : "+x"(sum.v) : "x"(a.v), "x"(b.v));
        return sum;
    }
    static Float max(Float a, Float b) { return {_mm256_max_ps(a.v, b.v)}; }
    static Float abs(Float a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
    static Float unit_power_of_eighths(Float rounded) {
        const __m256 table = _mm256_loadu_ps(powers_of_eighths);
        return {_mm256_permutevar8x32_ps(table, _mm256_castps_si256(rounded.v))};
    }
    static Float scale(Float a, Float e) {
        const __m256i exponent = _mm256_slli_epi32(_mm256_srli_epi32(biased(e), 3), 23);
        const __m256 power = _mm256_castsi256_ps(exponent);
        const __m256 normal = _mm256_cmp_ps(e.v, _mm256_set1_ps(-125), _CMP_NLT_UQ);
        return {_mm256_and_ps(_mm256_mul_ps(a.v, power), normal)};
    }
    static bool any_above(Float a, Float b) {
        return _mm256_movemask_ps(_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)) != 0;
    }
    static Float where_above(Float a, Float b, Float yes, Float no) {
        return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ))};
    }
    static Float where(std::uint64_t bits, Float yes, Float no) {
        const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits & 255)), lane);
        return {_mm256_blendv_ps(no.v, yes.v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane)))};
    }

    static void transpose(Float (&r)[lanes]) {
        __m256 t[8], u[8];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < 8; i += 2) {
            t[i] = _mm256_unpacklo_ps(r[i].v, r[i + 1].v);
            t[i + 1] = _mm256_unpackhi_ps(r[i].v, r[i + 1].v);
        }
#pragma GCC unroll 16
        for (std::size_t g = 0; g < 8; g += 4) {
            u[g] = _mm256_shuffle_ps(t[g], t[g + 2], 0x44);
            u[g + 1] = _mm256_shuffle_ps(t[g], t[g + 2], 0xee);
            u[g + 2] = _mm256_shuffle_ps(t[g + 1], t[g + 3], 0x44);
            u[g + 3] = _mm256_shuffle_ps(t[g + 1], t[g + 3], 0xee);
        }
#pragma GCC unroll 16
        for (std::size_t c = 0; c < 4; ++c) {
            r[c].v = _mm256_permute2f128_ps(u[c], u[4 + c], 0x20);
            r[4 + c].v = _mm256_permute2f128_ps(u[c], u[4 + c], 0x31);
        }
    }

private:
    static __m256i first(std::size_t count) {
        const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), index);
    }
    /// The low bits hold 8 (e + 127).
    static __m256i biased(Float e) {
        return _mm256_castps_si256(_mm256_add_ps(e.v, _mm256_set1_ps(0x1.8p20f + 127)));
    }
};

struct Double {
    using Scalar = double;
    static constexpr std::size_t lanes = 4;
    static constexpr std::size_t tile_vectors = 3, tile_rows = 4;
    static constexpr bool fuses = true;
    __m256d v;

    static Double load(const double* p) { return {_mm256_loadu_pd(p)}; }
    static Double load_first(const double* p, std::size_t count) {
        return {_mm256_maskload_pd(p, first(count))};
    }
    static Double set(double x) { return {_mm256_set1_pd(x)}; }
    void store(double* p) const { _mm256_storeu_pd(p, v); }
    void store_once(double* p) const { store(p); }
    void store_first(double* p, std::size_t count) const {
        _mm256_maskstore_pd(p, first(count), v);
    }
    static void finish_stores() {}

    static Double add(Double a, Double b) { return {_mm256_add_pd(a.v, b.v)}; }
    static Double sub(Double a, Double b) { return {_mm256_sub_pd(a.v, b.v)}; }
    static Double mul(Double a, Double b) { return {_mm256_mul_pd(a.v, b.v)}; }
    static Double div(Double a, Double b) { return {_mm256_div_pd(a.v, b.v)}; }
    static Double fma(Double a, Double b, Double c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
    static Double accumulate(Double sum, Double a, Double b) {
        asm("vfmadd231pd %2, %1, %0" : "+x"(sum.v) : "x"(a.v), "x"(b.v));
        return sum;
    }
    static Double max(Double a, Double b) { return {_mm256_max_pd(a.v, b.v)}; }
    static Double abs(Double a) { return {_mm256_andnot_pd(_mm256_set1_pd(-0.0), a.v)}; }
    static Double scale(Double a, Double e) {
        const __m256d biased = _mm256_add_pd(e.v, _mm256_set1_pd(0x1.8p52 + 1023));
        const __m256d power =
            _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(biased), 52));
        const __m256d normal = _mm256_cmp_pd(e.v, _mm256_set1_pd(-1021), _CMP_NLT_UQ);
        return {_mm256_and_pd(_mm256_mul_pd(a.v, power), normal)};
    }
    static bool any_above(Double a, Double b) {
        return _mm256_movemask_pd(_mm256_cmp_pd(a.v, b.v, _CMP_GT_OQ)) != 0;
    }
    static Double where_above(Double a, Double b, Double yes, Double no) {
        return {_mm256_blendv_pd(no.v, yes.v, _mm256_cmp_pd(a.v, b.v, _CMP_GT_OQ))};
    }
    static Double where(std::uint64_t bits, Double yes, Double no) {
        const __m256i lane = _mm256_setr_epi64x(1, 2, 4, 8);
        const __m256i set =
            _mm256_and_si256(_mm256_set1_epi64x(static_cast<long long>(bits & 15)), lane);
        return {_mm256_blendv_pd(no.v, yes.v, _mm256_castsi256_pd(_mm256_cmpeq_epi64(set, lane)))};
    }

    static void transpose(Double (&r)[lanes]) {
        const __m256d a = _mm256_unpacklo_pd(r[0].v, r[1].v),
                      b = _mm256_unpackhi_pd(r[0].v, r[1].v);
        const __m256d c = _mm256_unpacklo_pd(r[2].v, r[3].v),
                      d = _mm256_unpackhi_pd(r[2].v, r[3].v);
        r[0].v = _mm256_permute2f128_pd(a, c, 0x20);
        r[1].v = _mm256_permute2f128_pd(b, d, 0x20);
        r[2].v = _mm256_permute2f128_pd(a, c, 0x31);
        r[3].v = _mm256_permute2f128_pd(b, d, 0x31);
    }

private:
    static __m256i first(std::size_t count) {
        const __m256i index = _mm256_setr_epi64x(0, 1, 2, 3);
        return _mm256_cmpgt_epi64(_mm256_set1_epi64x(static_cast<long long>(count)), index);
    }
};

}  // namespace
}  // namespace attn::kernels
