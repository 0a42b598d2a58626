// Which way a question is computed: by the reference, or by which fused kernel.
#pragma once

#include "core/kernels/kernel.hpp"
#include "core/plan/settings.hpp"
#include "core/plan/shapes.hpp"

namespace attn {

/// Null: the reference.
struct ChosenKernels {
    const kernels::Kernel* projections = nullptr;
    const kernels::Kernel* attention = nullptr;
};

/// `auto` takes the reference for the whole question where its work is small, since its digits are
/// PyTorch's, and where a step is emitted that only the reference has. Settings must be resolved
/// but for the memory check. Errors: SettingError of kind unsupported (the processor) or usage (the
/// question).
ChosenKernels choose_kernels(const Settings& settings, const Geometry& geometry);

/// Whether weights that a fused kernel computes are worth computing twice, once for the context and
/// once while they are written, so that they need no memory.
bool streams_weights(const Settings& settings, const Geometry& geometry);

}  // namespace attn
