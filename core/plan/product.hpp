// Products of sizes.
#pragma once

#include <cstddef>
#include <initializer_list>

namespace attn {

/// As double, which holds sizes beyond any machine's memory.
inline double product(std::initializer_list<std::size_t> sizes) {
    double result = 1;
    for (std::size_t size : sizes) result *= static_cast<double>(size);
    return result;
}

}  // namespace attn
