// The table of fused kernels and the choice among them.
#pragma once

#include <string>
#include <vector>

#include "core/kernels/kernel.hpp"
#include "core/plan/settings.hpp"

namespace attn::kernels {

/// The kernels that this processor can run, the fastest last.
const std::vector<const Kernel*>& supported();

/// The kernel that is asked for by name, or for `automatic` the fastest; null for `reference`.
/// Errors: SettingError of kind unsupported where this processor cannot run it.
const Kernel* find(KernelChoice choice);

template <class T>
const Entries<T>& entries_of(const Kernel& kernel) {
    if constexpr (sizeof(T) == sizeof(float))
        return kernel.float32;
    else
        return kernel.float64;
}

}  // namespace attn::kernels
