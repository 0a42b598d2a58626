// Remainders and whole quotients, as PyTorch has them. They have no linkage, so that the kernels of
// each instruction set have their own.
#pragma once

namespace attn {
namespace {

/// x - floor(x / y) y without rounding of the quotient: the sign of y, as torch.remainder has it.
template <class T>
inline T remainder_of(T x, T y) {
    const T rest = static_cast<T>(__builtin_fmod(static_cast<double>(x), static_cast<double>(y)));
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/// torch.floor_divide.
template <class T>
inline T floor_quotient(T x, T y) {
    if (y == 0) return x / y;
    const T rest = static_cast<T>(__builtin_fmod(static_cast<double>(x), static_cast<double>(y)));
    const T below = rest != 0 && (rest < 0) != (y < 0) ? T(1) : T(0);
    const T whole = (x - rest) / y - below,
            floor = static_cast<T>(__builtin_floor(static_cast<double>(whole)));
    return whole - floor > T(0.5) ? floor + 1 : floor;
}

}  // namespace
}  // namespace attn
