// The table of fused kernels.
#pragma once

#include <span>
#include <vector>

#include "core/kernels/kernel.hpp"

namespace attn::kernels {

/// Every kernel there is, the same names on every machine, a faster one after a slower.
std::span<const Kernel> all();

/// The kernels that this processor can run, the fastest last.
const std::vector<const Kernel*>& supported();

/// Of a kernel that runs here.
template <class T>
const Entries<T>& entries_of(const Kernel& kernel) {
    if constexpr (sizeof(T) == sizeof(float))
        return *kernel.float32;
    else
        return *kernel.float64;
}

}  // namespace attn::kernels
