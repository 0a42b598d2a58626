// Inputs that PyTorch's generator draws before the parameters: torch.rand and torch.randn.
#pragma once

#include <cstdint>

#include "core/base/real_array.hpp"
#include "core/plan/settings.hpp"

namespace attn {

/// torch.rand(shape) or torch.randn(shape) in the settings' dtype, after manual_seed(seed) and
/// rng_skip draws. The settings have a shape.
RealArray draw_input(const Settings& settings);

/// The 32-bit draws of that input; 0 if the settings have no shape. The parameters' follow them.
std::uint64_t draws_of_input(const Settings& settings);

}  // namespace attn
