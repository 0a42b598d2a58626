// Vectors of 16 bytes in the compilers' vector types: any processor, no fused multiply-add.
//
// Every vector header provides these two types with the same operations; lanes are independent.
#pragma once

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

/// T: the element. Bits, Word: integers as wide as it, as vector and as scalar.
template <class T, class Lanes, class Bits, class Word>
struct GenericVector {
    using Scalar = T;
    static constexpr std::size_t lanes = 16 / sizeof(T);
    /// The size of a tile of the product in registers: vectors of lanes, and the most rows.
    static constexpr std::size_t tile_vectors = 2, tile_rows = 4;
    /// Whether fma rounds once.
    static constexpr bool fuses = false;
    Lanes v;

    static GenericVector load(const T* p) {
        GenericVector r;
        __builtin_memcpy(&r.v, p, sizeof r.v);
        return r;
    }
    /// The first `count` from p, then zeros.
    static GenericVector load_first(const T* p, std::size_t count) {
        GenericVector r = set(0);
        for (std::size_t i = 0; i < count; ++i) r.v[i] = p[i];
        return r;
    }
    static GenericVector set(T x) {
        GenericVector r;
        for (std::size_t i = 0; i < lanes; ++i) r.v[i] = x;
        return r;
    }
    void store(T* p) const { __builtin_memcpy(p, &v, sizeof v); }
    /// Bypasses the caches if the processor supports it and p is aligned. Other threads may not see
    /// it before finish_stores().
    void store_once(T* p) const { store(p); }
    static void finish_stores() {}
    void store_first(T* p, std::size_t count) const {
        for (std::size_t i = 0; i < lanes; ++i)
            if (i < count) p[i] = v[i];
    }

    static GenericVector add(GenericVector a, GenericVector b) { return {a.v + b.v}; }
    static GenericVector sub(GenericVector a, GenericVector b) { return {a.v - b.v}; }
    static GenericVector mul(GenericVector a, GenericVector b) { return {a.v * b.v}; }
    static GenericVector div(GenericVector a, GenericVector b) { return {a.v / b.v}; }
    /// a b + c, rounded once if the processor has a fused multiply-add; here it is not.
    static GenericVector fma(GenericVector a, GenericVector b, GenericVector c) {
        return {a.v * b.v + c.v};
    }
    /// fma(a, b, sum). In assembler if there is an instruction for it: compilers reload operands
    /// from memory at each use, or move sums between registers.
    static GenericVector accumulate(GenericVector sum, GenericVector a, GenericVector b) {
        return fma(a, b, sum);
    }
    /// a > b ? a : b, so b where either is NaN.
    static GenericVector max(GenericVector a, GenericVector b) { return where_above(a, b, a, b); }
    static GenericVector abs(GenericVector a) { return from_bits(bits(a) & ~bits(set(T{-0.0}))); }
    /// a 2^floor(e), where float32's e are multiples of 1/8 and float64's integers. For any a, 0 if
    /// e is below -125 (-1021), which avoids subnormal numbers; from 128 (1024) on, the result is
    /// infinite for a above 0.
    static GenericVector scale(GenericVector a, GenericVector e) {
        const GenericVector most = set(sizeof(T) == 4 ? 128 : 1024);
        const Bits low = biased(where_above(e, most, most, e));
        const Bits exponent = sizeof(T) == 4 ? low >> 3 << 23 : low << 52;
        const Bits tiny = bits_of(e.v < set(sizeof(T) == 4 ? T{-125} : T{-1021}).v);
        return from_bits(bits(mul(a, from_bits(exponent))) & ~tiny);
    }
    /// float32: weight_unit 2^(i / 8), i the number in the lowest three bits.
    static GenericVector unit_power_of_eighths(GenericVector rounded) {
        const Bits low = bits(rounded);
        GenericVector r;
        for (std::size_t i = 0; i < lanes; ++i) r.v[i] = powers_of_eighths[low[i] & 7];
        return r;
    }
    static bool any_above(GenericVector a, GenericVector b) {
        const Bits above = bits_of(a.v > b.v);
        Word any = 0;
        for (std::size_t i = 0; i < lanes; ++i) any |= above[i];
        return any != 0;
    }
    static GenericVector where_above(GenericVector a, GenericVector b, GenericVector yes,
                                     GenericVector no) {
        return choose(bits_of(a.v > b.v), yes, no);
    }
    /// Lane l of `yes` where bit l is set.
    static GenericVector where(std::uint64_t set_bits, GenericVector yes, GenericVector no) {
        Bits mask;
        for (std::size_t i = 0; i < lanes; ++i) mask[i] = Word{0} - ((set_bits >> i) & 1);
        return choose(mask, yes, no);
    }

    static void transpose(GenericVector (&r)[lanes]) {
        GenericVector t[lanes];
        for (std::size_t i = 0; i < lanes; ++i)
            for (std::size_t j = 0; j < lanes; ++j) t[i].v[j] = r[j].v[i];
        for (std::size_t i = 0; i < lanes; ++i) r[i] = t[i];
    }

private:
    /// The low bits hold 8 (e + 127); for float64 e + 1023.
    static Bits biased(GenericVector e) {
        return bits(add(e, set(sizeof(T) == 4 ? T{0x1.8p20} + 127 : T{0x1.8p52} + 1023)));
    }
    template <class Vector>
    static Bits bits_of(Vector v) {
        return reinterpret_cast<Bits>(v);
    }
    static Bits bits(GenericVector a) { return bits_of(a.v); }
    static GenericVector from_bits(Bits b) { return {reinterpret_cast<Lanes>(b)}; }
    static GenericVector choose(Bits mask, GenericVector yes, GenericVector no) {
        return from_bits((bits(yes) & mask) | (bits(no) & ~mask));
    }
};

using FloatLanes __attribute__((vector_size(16))) = float;
using DoubleLanes __attribute__((vector_size(16))) = double;
using FloatBits __attribute__((vector_size(16))) = std::uint32_t;
using DoubleBits __attribute__((vector_size(16))) = std::uint64_t;

using Float = GenericVector<float, FloatLanes, FloatBits, std::uint32_t>;
using Double = GenericVector<double, DoubleLanes, DoubleBits, std::uint64_t>;

}  // namespace
}  // namespace attn::kernels
