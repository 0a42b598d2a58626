// Functions of vectors: the exponential in the softmax's weight units, and tanh.
#pragma once

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

/// Whether products are of pairs, see PairTable.
template <class V>
constexpr bool is_paired = requires {
    requires V::paired;
};

template <class V>
inline V polynomial(V x, V leading) {
    (void)x;
    return leading;
}

/// ((leading x + c1) x + c2) x + ...
template <class V, class... Coefficients>
inline V polynomial(V x, V leading, typename V::Scalar next, Coefficients... rest) {
    return polynomial(x, V::fma(leading, x, V::set(next)), rest...);
}

/// weight_unit e^x. x is reduced by the nearest multiple of ln 2 / 8 (float64: of ln 2), so that
/// the remainder is exact with a fused multiply-add. 0 for x = -Infinity and wherever e^x would be
/// subnormal; NaN for NaN and +Infinity. Relative error of the polynomials before rounding: 2.7e-8
/// for float32, 3.4e-18 for float64 (least maximum, fitted for their intervals); the table of
/// eighths adds half a unit in the last place.
template <class V>
inline V exponential(V x) {
    using T = typename V::Scalar;
    // They have so few bits that their product with n is exact in T; the remainder of ln 2.
    constexpr T ln2_high = sizeof(T) == 4 ? T(0x1.62ep-1) : T(0x1.62e42fefap-1);
    constexpr T ln2_low = sizeof(T) == 4 ? T(0x1.0bfbe8e7bcd5ep-15) : T(0x1.cf79abc9e3b3ap-40);
    // Adding this rounds to multiples of 1/8 (float64: of 1) and leaves the eighths in the lowest
    // bits. Where it does not, e^x is 0 or infinite.
    const V rounder = V::set(sizeof(T) == 4 ? T(0x1.8p20) : T(0x1.8p52));
    const V rounded = V::fma(x, V::set(T(1.4426950408889634)), rounder);
    const V n = V::sub(rounded, rounder);
    V f;
    if constexpr (V::fuses)
        f = V::fma(n, V::set(T(-0.6931471805599453)), x);
    else
        f = V::fma(n, V::set(-ln2_low), V::fma(n, V::set(-ln2_high), x));
    if constexpr (sizeof(T) == 4) {
        const V slope = polynomial(f, V::set(0.16664587f), 0.5000652f, 1.0f);
        const V eighth = V::unit_power_of_eighths(rounded);
        return V::scale(V::fma(V::mul(eighth, f), slope, eighth), n);
    } else {
        constexpr double u = weight_unit;
        return V::scale(polynomial(f, V::set(u * 2.4991489198746126e-08), u * 2.763103155654868e-07,
                                   u * 2.7557626567526138e-06, u * 2.4801490642834746e-05,
                                   u * 0.00019841269436880697, u * 0.001388888894634752,
                                   u * 0.008333333333549683, u * 0.04166666666651784,
                                   u * 0.1666666666666622, u * 0.5000000000000012, u, u),
                        n);
    }
}

/// The factor of sums when the shift increases: e^(from - to); 1 when it decreases, since the sums
/// are then 0.
template <class V>
inline V rescaling(V from, V to) {
    using T = typename V::Scalar;
    const V rise = V::max(V::sub(to, from), V::set(0));
    return V::mul(exponential(V::sub(V::set(0), rise)), V::set(T(1 / weight_unit)));
}

/// tanh x. Small arguments by x + x^3 P(x^2) (float64: a quotient), the others by
/// 1 - 2 / (e^(2|x|) + 1) with x's sign. Within 2 units in the last place for float32, 3 for
/// float64. Source: S. Moshier's Cephes, tanhf.c and tanh.c.
template <class V>
inline V tanh(V x) {
    using T = typename V::Scalar;
    const V square = V::mul(x, x);
    V small;
    if constexpr (sizeof(T) == 4) {
        const V p = polynomial(square, V::set(-5.70498872745e-3f), 2.06390887954e-2f,
                               -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f);
        small = V::fma(V::mul(p, square), x, x);
    } else {
        const V p = polynomial(square, V::set(-9.64399179425052238628e-1),
                               -9.92877231001918586564e1, -1.61468768441708447952e3);
        const V q = polynomial(square, V::set(1.0), 1.12811678491632931402e2,
                               2.23548839060100448583e3, 4.84406305325125486048e3);
        small = V::fma(V::mul(V::div(p, q), square), x, x);
    }
    // From 22 on tanh is 1 in either type; the bound keeps the power finite.
    const V magnitude = V::sub(V::set(0), V::max(V::set(-22), V::sub(V::set(0), V::abs(x))));
    const V grown = V::mul(exponential(V::add(magnitude, magnitude)), V::set(T(1 / weight_unit)));
    const V large = V::sub(V::set(1), V::div(V::set(2), V::add(grown, V::set(1))));
    const V negative = V::sub(V::set(0), large);
    const V signed_large = V::where_above(V::set(0), x, negative, large);
    return V::where_above(V::abs(x), V::set(T(0.625)), signed_large, small);
}

template <class V, class T = typename V::Scalar>
Magnitudes<T> magnitudes(const T* numbers, std::size_t count) noexcept {
    constexpr T infinity = T(__builtin_huge_val());
    const V zero = V::set(0);
    V less = V::set(-infinity), most = zero, zeros = zero;  // less: the largest of -|x|
    const auto take = [&](V number) {
        const V size = V::abs(number);
        most = V::max(size, most);
        less = V::max(V::where_above(size, zero, V::sub(zero, size), V::set(-infinity)), less);
        zeros = V::fma(number, zero, zeros);
    };
    std::size_t i = 0;
    for (; i + V::lanes <= count; i += V::lanes) take(V::load(numbers + i));
    if (i < count) take(V::load_first(numbers + i, count - i));
    T lesses[V::lanes], mosts[V::lanes], sums[V::lanes];
    less.store(lesses);
    most.store(mosts);
    zeros.store(sums);
    Magnitudes<T> all{infinity, 0, true};
    for (std::size_t l = 0; l < V::lanes; ++l) {
        all.least = -lesses[l] < all.least ? -lesses[l] : all.least;
        all.most = mosts[l] > all.most ? mosts[l] : all.most;
        all.finite = all.finite && sums[l] == 0;
    }
    return all;
}

}  // namespace
}  // namespace attn::kernels
