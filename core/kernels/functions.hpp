// Functions of vectors: 2^x in the parts that the softmax needs, and tanh.
#pragma once

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

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

/// 2^(x - exponent) for a whole `exponent`: x is cut at the nearest multiple n of 1/8 (float64: of
/// 1), and 2^(x - n) is scaled by n - exponent. The scale by powers of two is exact, so the digits
/// do not depend on the exponent. 0 for x = -Infinity and wherever the result would be subnormal;
/// NaN for NaN and +Infinity. Relative error of the polynomials before rounding: 2.7e-8 for
/// float32, 3.4e-18 for float64 (least maximum, fitted for their intervals); the table of eighths
/// adds half a unit in the last place.
template <class V>
inline V power(V x, V exponent) {
    using T = typename V::Scalar;
    if constexpr (sizeof(T) == 4) {
        const V n = V::round_to_eighth(x);
        const V f = V::sub(x, n), e = V::sub(n, exponent);
        const V slope = polynomial(f, V::set(0.0554962195f), 0.240257636f, 0.693147242f);
        const V eighth = V::power_of_fraction(e);
        return V::scale(V::fma(V::mul(eighth, f), slope, eighth), e);
    } else {
        const V n = V::round(x);
        const V p =
            polynomial(V::sub(x, n), V::set(4.4347812964370973e-10), 7.073782614288071e-09,
                       1.0178199524235901e-07, 1.3215435285680018e-06, 1.5252733493190626e-05,
                       0.00015403530457106345, 0.0013333558146774607, 0.009618129107594122,
                       0.055504108664820084, 0.2402265069591013, 0.6931471805599453, 1.0);
        return V::scale(p, V::sub(n, exponent));
    }
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
    const V grown = power(V::mul(magnitude, V::set(T(2.8853900817779268))), V::set(0));
    const V large = V::sub(V::set(1), V::div(V::set(2), V::add(grown, V::set(1))));
    const V negative = V::sub(V::set(0), large);
    const V signed_large = V::where_above(V::set(0), x, negative, large);
    return V::where_above(V::abs(x), V::set(T(0.625)), signed_large, small);
}

}  // namespace
}  // namespace attn::kernels
