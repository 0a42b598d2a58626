// The value of each operation on numbers, as IEEE 754 and PyTorch have it.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/expression/expression.hpp"

namespace attn {

/// x - floor(x / y) y without rounding of the quotient: the sign of y, as torch.remainder has it.
template <class T>
T remainder_of(T x, T y) {
    const T rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/// torch.floor_divide.
template <class T>
T floor_quotient(T x, T y) {
    if (y == 0) return x / y;
    const T rest = std::fmod(x, y);
    const T below = rest != 0 && (rest < 0) != (y < 0) ? T(1) : T(0);
    const T whole = (x - rest) / y - below, floor = std::floor(whole);
    return whole - floor > T(0.5) ? floor + 1 : floor;
}

/// The smaller or larger one; NaN if one is.
template <class T>
T smaller(T x, T y) {
    return x != x || x < y ? x : y;
}
template <class T>
T larger(T x, T y) {
    return x != x || x > y ? x : y;
}

/// Calls f(values of operands) with a function of up to two numbers, which the operation is.
/// Functions that C libraries round differently in float32 are computed in float64.
template <class T, class Apply>
void with_operation(Operation operation, const Apply& f) {
    using D = double;
    switch (operation) {
        case Operation::logical_or: return f([](T x, T y) { return T(x != 0 || y != 0); });
        case Operation::logical_and: return f([](T x, T y) { return T(x != 0 && y != 0); });
        case Operation::equal: return f([](T x, T y) { return T(x == y); });
        case Operation::not_equal: return f([](T x, T y) { return T(x != y); });
        case Operation::less: return f([](T x, T y) { return T(x < y); });
        case Operation::less_equal: return f([](T x, T y) { return T(x <= y); });
        case Operation::greater: return f([](T x, T y) { return T(x > y); });
        case Operation::greater_equal: return f([](T x, T y) { return T(x >= y); });
        case Operation::add: return f([](T x, T y) { return x + y; });
        case Operation::subtract: return f([](T x, T y) { return x - y; });
        case Operation::multiply: return f([](T x, T y) { return x * y; });
        case Operation::divide: return f([](T x, T y) { return x / y; });
        case Operation::floor_divide: return f([](T x, T y) { return floor_quotient(x, y); });
        case Operation::modulo: return f([](T x, T y) { return remainder_of(x, y); });
        case Operation::min: return f([](T x, T y) { return smaller(x, y); });
        case Operation::max: return f([](T x, T y) { return larger(x, y); });
        case Operation::pow: return f([](T x, T y) { return T(std::pow(D(x), D(y))); });
        case Operation::negate: return f([](T x, T) { return -x; });
        case Operation::logical_not: return f([](T x, T) { return T(x == 0); });
        case Operation::abs: return f([](T x, T) { return std::abs(x); });
        case Operation::floor: return f([](T x, T) { return std::floor(x); });
        case Operation::exp: return f([](T x, T) { return T(std::exp(D(x))); });
        case Operation::log: return f([](T x, T) { return T(std::log(D(x))); });
        case Operation::sqrt: return f([](T x, T) { return std::sqrt(x); });
        case Operation::tanh: return f([](T x, T) { return T(std::tanh(D(x))); });
        case Operation::number:
        case Operation::variable:
        case Operation::element:
        case Operation::to_real:
        case Operation::conditional: break;  // not of numbers alone
    }
}

}  // namespace attn
