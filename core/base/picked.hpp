// Picks elements along an axis of an array.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/tensor.hpp"

namespace attn {

/// The elements at these indices of an axis, in this order.
template <class T>
Array<T> picked(const Array<T>& all, std::size_t axis, const std::vector<std::size_t>& indices) {
    std::vector<std::size_t> shape = all.shape();
    std::size_t inner = 1;
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    const std::size_t count = std::exchange(shape[axis], indices.size());
    Array<T> part = Array<T>::from_shape(shape);
    T* to = part.data();
    for (const T* from = all.data(); to != part.end(); from += count * inner)
        for (std::size_t index : indices) to = std::copy_n(from + index * inner, inner, to);
    return part;
}

}  // namespace attn
