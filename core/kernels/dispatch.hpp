// The table of fused kernels.
#pragma once

#include <span>
#include <vector>

#include "core/kernels/kernel.hpp"

namespace attn::kernels {

/// All kernels, with the same names on every machine, from the slowest to the fastest.
std::span<const Kernel> all();

/// The kernels that this processor supports, the fastest last.
const std::vector<const Kernel*>& supported();

/// Its products of pairs, if the processor has them; else null.
inline const PairTable* pairs_of(const Kernel& kernel) {
    return kernel.has_pairs != nullptr && kernel.has_pairs() ? kernel.pairs : nullptr;
}

/// The kernel must be supported by this processor.
template <class T>
const Entries<T>& entries_of(const Kernel& kernel) {
    if constexpr (sizeof(T) == sizeof(float))
        return kernel.table->float32;
    else
        return kernel.table->float64;
}

}  // namespace attn::kernels
