// The table of fused kernels and the choice among them.
#pragma once

#include <span>
#include <vector>

#include "core/kernels/kernel.hpp"
#include "core/plan/settings.hpp"

namespace attn::kernels {

/// Every kernel there is, the same names on every machine, a faster one after a slower.
std::span<const Kernel> all();

/// The kernels that this processor can run, the fastest last.
const std::vector<const Kernel*>& supported();

/// The kernel that is asked for by name, or for `automatic` the fastest; null for `reference`.
/// Errors: SettingError of kind unsupported where this processor cannot run it.
const Kernel* find(KernelChoice choice);

/// Of a kernel that runs here.
template <class T>
const Entries<T>& entries_of(const Kernel& kernel) {
    if constexpr (sizeof(T) == sizeof(float))
        return *kernel.float32;
    else
        return *kernel.float64;
}

}  // namespace attn::kernels
