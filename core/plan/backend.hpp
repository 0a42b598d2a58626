// The backends: the reference and the fused kernels, one row each, and what they compute for a
// plan.
#pragma once

#include "core/base/thread_pool.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/backward.hpp"
#include "core/operator/projection.hpp"
#include "core/plan/plan.hpp"

namespace attn {

struct Backend {
    std::string_view name;
    const kernels::Kernel* kernel;  ///< the fused kernel; null for the reference

    bool is_fused() const { return kernel != nullptr; }
    /// The portable kernel's products take longer than the steps that they replace.
    bool is_chunked() const { return is_fused() && name != "generic"; }
    bool runs_here() const { return kernel == nullptr || kernel->runs_here(); }
};

/// The reference, then the fused kernels from the slowest to the fastest, the same list on every
/// machine, supported or not.
std::span<const Backend> backends();

/// Computes the context of every query with the plan's backend, into rows of heads, and records
/// intermediate arrays. Large weights may become streams, which use the threads while they are
/// read. Consumes the call. Errors: std::bad_alloc.
template <class T>
void attend(const Plan& plan, AttentionCall<T>&& call, const HeadRows<T>& context,
            Recorder& recorder, ThreadPool& pool);

/// Backpropagates the gradient of the context, (batch, heads, q_len, d_v). A fused kernel records
/// nothing, and omits the gradients of additive masks.
template <class T>
AttentionGradients<T> attend_backward(const Plan& plan, const AttentionCall<T>& call,
                                      const Tensor4<T>& grad_context, Recorder& recorder,
                                      ThreadPool& pool);

/// The context of every query over the call's keys, which may be some of a sequence's, and its
/// logsumexp in double, (batch, heads, q_len). A query that attends to none of the keys has context
/// 0 and -Infinity. The call has no sink, which is for the merge, and the mask method neg_inf.
/// Errors: std::bad_alloc.
template <class T>
void attend_part(const Backend& backend, const AttentionCall<T>& call, const HeadRows<T>& context,
                 double* logsumexp, ThreadPool& pool);

/// x W^T + b for each projection, x being (batch, rows, d_in).
template <class T>
void project(const Plan& plan, const Tensor3<T>& x, std::span<const ProjectionTo<T>> projections,
             ThreadPool& pool);

/// Multiplications and additions of all heads without projections, which are two operations each.
double multiply_adds(const Plan& plan);

/// Rows of (batch, heads, rows, columns) without gaps.
template <class T>
HeadRows<T> rows_of_heads(T* data, const std::array<std::size_t, 4>& shape) {
    return {data, shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]};
}

template <class T>
void copy_heads(const T* from, const std::array<std::size_t, 4>& shape, const HeadRows<T>& to) {
    for_each_index(shape[0] * shape[1], [&](std::size_t i) {
        for (std::size_t row = 0; row < shape[2]; ++row, from += shape[3])
            std::copy_n(from, shape[3], to.at(i / shape[1], i % shape[1], row));
    });
}

/// The values of the setting `kernel`: auto, then every backend's name; empty after the last.
std::string_view backend_name(std::size_t index);

/// The named backend. `auto` selects the fastest that the processor supports. It selects the
/// reference if the work is small, since its digits are PyTorch's, or if a step is emitted that
/// only the reference records. The rest of the plan must be complete. Errors: SettingError of kind
/// unsupported (the processor) or usage (the question).
const Backend& choose_backend(std::string_view name, const Plan& plan);

/// Whether the weights of a fused kernel are computed twice, once for the context and once while
/// they are written, to save their memory.
bool streams_weights(const Plan& plan);

}  // namespace attn
