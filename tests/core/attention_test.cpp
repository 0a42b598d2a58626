// The exponential function of the reference operator, by itself; see torch_bits_test.cpp.
#include "core/base/torch_math.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace attention_test {

using namespace attn;

TEST_CASE_TEMPLATE("torch_exp: within one unit in the last place, with exact ends", T, float,
                   double) {
    const bool single = sizeof(T) == sizeof(float);
    const T least = single ? T{-87} : T{-708}, most = single ? T{88} : T{709};
    for (T x = least; x < most; x += T(0.0137)) {
        const long double exact = std::exp(static_cast<long double>(x));
        const T rounded = static_cast<T>(exact);
        const T ulp = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
        CHECK(std::abs(static_cast<long double>(torch_exp(x)) - exact) <= ulp);
    }
    CHECK(torch_exp(T{0}) == 1);
    CHECK(torch_exp(T{-0.0}) == 1);
    CHECK(torch_exp(-std::numeric_limits<T>::infinity()) == 0);
    CHECK(std::isinf(torch_exp(std::numeric_limits<T>::infinity())));
    CHECK(torch_exp(single ? T{-105} : T{-1001}) == 0);
    const T subnormal = torch_exp(single ? T{-100} : T{-740});
    CHECK(subnormal > 0);
    CHECK(subnormal < std::numeric_limits<T>::min());
    CHECK(std::isinf(torch_exp(single ? T{101} : T{710})));
    CHECK(std::isnan(torch_exp(std::numeric_limits<T>::quiet_NaN())));
}

}  // namespace attention_test
