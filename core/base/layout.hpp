// Copies of arrays with another layout.
#pragma once

#include <numeric>

#include "core/base/memory.hpp"
#include "core/base/named_array.hpp"

namespace attn {

/// `outer` times `length` elements along an axis, each of `inner` numbers.
struct AxisRuns {
    std::size_t outer = 1, length = 1, inner = 1;

    template <class Shape>
    AxisRuns(const Shape& shape, std::size_t axis) : length(shape[axis]) {
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (i != axis) (i < axis ? outer : inner) *= shape[i];
    }
};

/// The elements at these indices of an axis, in this order.
template <class T>
void copy_picked(const T* from, const AxisRuns& runs, const std::vector<std::size_t>& indices,
                 T* to) {
    for_each_index(runs.outer, [&](std::size_t run) {
        const T* const first = from + run * runs.length * runs.inner;
        for (std::size_t i = 0; i < indices.size();) {
            std::size_t end = i + 1;  // neighbours are copied at once
            while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
            to = std::copy_n(first + indices[i] * runs.inner, (end - i) * runs.inner, to);
            i = end;
        }
    });
}

template <class T, class Shape>
ShapedArray<T, Shape> picked(const ShapedArray<T, Shape>& all, std::size_t axis,
                             const std::vector<std::size_t>& indices) {
    Shape shape = all.shape();
    shape[axis] = indices.size();
    auto part = ShapedArray<T, Shape>::from_shape(shape);
    copy_picked(all.data(), {all.shape(), axis}, indices, part.data());
    return part;
}

inline AnyArray picked(const AnyArray& all, std::size_t axis,
                       const std::vector<std::size_t>& indices) {
    return std::visit([&](const auto& values) -> AnyArray { return picked(values, axis, indices); },
                      all);
}

/// `count` elements of an axis.
template <class T, class Shape>
ShapedArray<T, Shape> sliced(const ShapedArray<T, Shape>& all, std::size_t axis, std::size_t first,
                             std::size_t count) {
    std::vector<std::size_t> indices(count);
    std::iota(indices.begin(), indices.end(), first);
    return picked(all, axis, indices);
}

/// Writes `part` to indices from `first` on of an axis of x.
template <class T, class Shape>
void put(ShapedArray<T, Shape>& x, std::size_t axis, std::size_t first,
         const ShapedArray<T, Shape>& part) {
    const AxisRuns runs(x.shape(), axis);
    const std::size_t count = part.shape(axis) * runs.inner;
    for_each_index(runs.outer, [&](std::size_t run) {
        std::copy_n(part.data() + run * count, count,
                    x.data() + (run * runs.length + first) * runs.inner);
    });
}

/// One after the other along an axis.
template <class T, class Shape>
ShapedArray<T, Shape> joined(std::size_t axis, const ShapedArray<T, Shape>& first,
                             const ShapedArray<T, Shape>& last) {
    Shape shape = first.shape();
    shape[axis] += last.shape(axis);
    auto all = ShapedArray<T, Shape>::from_shape(shape);
    put(all, axis, 0, first);
    put(all, axis, first.shape(axis), last);
    return all;
}

/// Item i of the result is item order[i] of `items`.
template <class Item>
std::vector<Item> in_order(const std::vector<Item>& items, const std::vector<std::size_t>& order) {
    std::vector<Item> ordered;
    ordered.reserve(order.size());
    for (const std::size_t i : order) ordered.push_back(items[i]);
    return ordered;
}

/// The axes in another order: axis i of the copy is axis order[i] of `all`.
template <class T>
Array<T> permuted(const Array<T>& all, const std::vector<std::size_t>& order) {
    std::vector<std::size_t> shape, strides;
    for (const std::size_t axis : order) {
        shape.push_back(all.shape(axis));
        strides.push_back(AxisRuns(all.shape(), axis).inner);
    }
    Array<T> copy = Array<T>::from_shape(shape);
    const std::size_t run = strides.back() == 1 ? shape.back() : 1;  // neighbours stay neighbours
    for_each_index(copy.size() / std::max<std::size_t>(run, 1), [&](std::size_t at) {
        std::size_t from = 0, rest = at * run;
        for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
            from += rest % shape[axis] * strides[axis];
        std::copy_n(all.data() + from, run, copy.data() + at * run);
    });
    return copy;
}

/// The order that undoes another.
inline std::vector<std::size_t> inverse_of(const std::vector<std::size_t>& order) {
    std::vector<std::size_t> inverse(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) inverse[order[i]] = i;
    return inverse;
}

/// Numbers of the shape (batch, rows, columns, d) as (batch, columns, rows, d).
template <class T>
void copy_swapped(const T* from, const std::array<std::size_t, 4>& shape, T* to) {
    const std::size_t rows = shape[1], columns = shape[2], d = shape[3];
    for_each_index(shape[0] * columns, [&](std::size_t i) {
        const T* const first = from + (i / columns * rows * columns + i % columns) * d;
        for (std::size_t row = 0; row < rows; ++row)
            to = std::copy_n(first + row * columns * d, d, to);
    });
}

}  // namespace attn
