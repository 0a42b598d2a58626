// Projections by a fused kernel, on all threads.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/projection.hpp"

namespace attn {

/// Packs neighbouring columns of x W^T + b for `entries.project`: (d_in, lanes), then the bias. The
/// first column's weights are at `weight`: rows of d_in elements, one for each column, or, where
/// `in_out`, rows of `width` elements, one for each input. `bias` is null or the first column's.
template <class T>
void pack_panel(const kernels::Entries<T>& entries, const T* weight, bool in_out, std::size_t width,
                std::size_t d_in, std::size_t columns, const T* bias, T* packed);

/// x W^T + b for each projection, x being (batch, rows, d_in). x is read once for all of them.
/// Products are fused multiply-adds in the order of the inner dimension, starting from the bias;
/// the answer does not depend on the number of threads.
template <class T>
void project_fused(const kernels::Kernel& kernel, const Tensor3<T>& x,
                   std::span<const ProjectionTo<T>> projections, ThreadPool& workers);

}  // namespace attn
