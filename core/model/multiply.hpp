// The products of linear maps, with weights that are used where the mapped file has them, or
// decoded in parts.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/tensor.hpp"
#include "core/model/parameter.hpp"
#include "core/model/products.hpp"

namespace attn {

/// out = x W^T + b by the fused kernel of `compute`, x being (1, rows, d_in); out has rows of d_out
/// elements. The bias may be empty. An element is the same whatever the number of threads, and
/// whether the weight is decoded. Errors: those of ParameterSource::read.
template <class T>
void multiply(const Compute& compute, const LinearMap& map, const std::vector<T>& bias,
              const Tensor3<T>& x, T* out);

/// The most bytes that `multiply` allocates; the pages of a mapped file are not counted.
double memory_of_multiply(const LinearMap& map, std::size_t rows, std::size_t threads, Dtype dtype);

}  // namespace attn
