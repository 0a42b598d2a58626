// The products of linear maps, with weights that are used where the mapped file has them, or
// decoded in parts.
#pragma once

#include <cstddef>
#include <vector>

#include "core/model/parameter.hpp"
#include "core/model/products.hpp"

namespace attn {

/// out = x W^T + b by the fused kernel of `compute`, x having rows of d_in elements, out of d_out.
/// The bias may be empty. An element is the same whatever the number of threads, and whether the
/// weight is decoded. Errors: those of ParameterSource::read.
template <class T>
void multiply(const Compute& compute, const LinearMap& map, const std::vector<T>& bias, const T* x,
              std::size_t rows, T* out);

}  // namespace attn
