// The array types that core computes with: row-major xtensor containers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>

#include "core/base/memory.hpp"

namespace attn {

/// Any rank, as arrays come in and go out.
template <class T>
using Array = xt::xarray<T, xt::layout_type::row_major, NumberAllocator<T>>;

/// (batch, rows, columns): a batch of matrices.
template <class T>
using Tensor3 = xt::xtensor<T, 3, xt::layout_type::row_major, NumberAllocator<T>>;

/// (batch, heads, rows, columns): the operator's own rank.
template <class T>
using Tensor4 = xt::xtensor<T, 4, xt::layout_type::row_major, NumberAllocator<T>>;

/// "(2, 6, 3)".
std::string shape_text(const std::vector<std::size_t>& shape);

/// How many axes, from the last but one on, row `row` of an array is the first of; with `next` 1,
/// is the last of. Rows are runs of the last axis: these are the brackets that open before one or
/// close after it.
std::size_t axes_that_turn(const std::vector<std::size_t>& shape, std::size_t row,
                           std::size_t next);

/// Where rows of heads lie: row r of head h of batch entry b starts at
/// data + b * batch + h * head + r * row.
template <class T>
struct HeadRows {
    T* data;
    std::size_t batch, head, row;
};

}  // namespace attn
