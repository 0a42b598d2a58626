// What computes a question: the reference, or a fused kernel; one row each.
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

/// What a backend computes in one type.
template <class T>
struct BackendEntries {
    /// The context of every query, into rows of heads, and what the recorder wants on the way.
    /// Large weights may become streams, which use the threads while they are read. Uses the call
    /// up. Errors: std::bad_alloc.
    void (*attend)(const Plan& plan, AttentionCall<T> call, const HeadRows<T>& context,
                   Recorder& recorder, ThreadPool& pool);

    /// x W^T + b for each projection, x being (batch, rows, d_in).
    void (*project)(const Plan& plan, const Tensor3<T>& x,
                    std::span<const ProjectionTo<T>> projections, ThreadPool& pool);
};

struct Backend {
    std::string_view name;
    bool (*runs_here)();  ///< whether this processor can
    /// What it cannot do of a question: "writes mask"; empty: nothing.
    std::string (*lacks)(const Plan& plan);
    const kernels::Kernel* kernel;  ///< that it runs; the reference runs none
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

/// The reference, then the fused ones, a faster one after a slower: the same on every machine,
/// whatever runs there.
std::span<const Backend> backends();

/// The names that the setting `kernel` can have: auto, then every backend's; empty behind the last.
std::string_view backend_name(std::size_t place);

/// The backend that is named. `auto` takes the fastest that runs here, but the reference for the
/// whole question where its work is small, since its digits are PyTorch's, and where a step is
/// emitted that only the reference has. The plan must be whole but for this.
/// Errors: SettingError of kind unsupported (the processor) or usage (the question).
const Backend& choose_backend(std::string_view name, const Plan& plan);

/// Whether weights that a fused kernel computes are worth computing twice, once for the context and
/// once while they are written, so that they need no memory.
bool streams_weights(const Plan& plan);

}  // namespace attn
