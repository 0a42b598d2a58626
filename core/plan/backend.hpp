// The backends: the reference and the fused kernels, one row each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/thread_pool.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/attention.hpp"
#include "core/operator/projection.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// The functions of a backend in one type.
template <class T>
struct BackendEntries {
    /// Computes the context of every query, into rows of heads, and records intermediate arrays.
    /// Large weights may become streams, which use the threads while they are read. Consumes the
    /// call. Errors: std::bad_alloc.
    void (*attend)(const Plan& plan, AttentionCall<T> call, const HeadRows<T>& context,
                   Recorder& recorder, ThreadPool& pool);

    /// x W^T + b for each projection, x being (batch, rows, d_in).
    void (*project)(const Plan& plan, const Tensor3<T>& x,
                    std::span<const ProjectionTo<T>> projections, ThreadPool& pool);
};

struct Backend {
    std::string_view name;
    bool (*runs_here)();  ///< whether this processor supports it
    /// A part of the question that it does not support: "writes mask"; empty: none.
    std::string (*lacks)(const Plan& plan);
    const kernels::Kernel* kernel;  ///< the fused kernel; null for the reference
    BackendEntries<float> float32;
    BackendEntries<double> float64;

    bool is_fused() const { return kernel != nullptr; }

    template <class T>
    const BackendEntries<T>& entries() const {
        if constexpr (sizeof(T) == sizeof(float))
            return float32;
        else
            return float64;
    }
};

/// The reference, then the fused kernels from the slowest to the fastest: the same list on every
/// machine, supported or not.
std::span<const Backend> backends();

/// The values of the setting `kernel`: auto, then every backend's name; empty after the last.
std::string_view backend_name(std::size_t place);

/// The named backend. `auto` selects the fastest that the processor supports. It selects the
/// reference if the work is small, since its digits are PyTorch's, or if a step is emitted that
/// only the reference records. The rest of the plan must be complete. Errors: SettingError of kind
/// unsupported (the processor) or usage (the question).
const Backend& choose_backend(std::string_view name, const Plan& plan);

/// Whether the weights of a fused kernel are computed twice, once for the context and once while
/// they are written, to save their memory.
bool streams_weights(const Plan& plan);

}  // namespace attn
