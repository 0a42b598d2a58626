// Projections by a fused kernel, on all threads.
#pragma once

#include <span>

#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/projection.hpp"

namespace attn {

/// x W^T + b for each projection, x being (batch, rows, d_in). x is read once for all of them.
/// Products are fused multiply-adds in the order of the inner dimension, starting from the bias;
/// the answer does not depend on the number of threads.
template <class T>
void project_fused(const kernels::Kernel& kernel, const Tensor3<T>& x,
                   std::span<const ProjectionTo<T>> projections, ThreadPool& workers);

}  // namespace attn
