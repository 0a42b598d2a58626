// PyTorch's initialisers: the bounds of their uniform draws and the filling of one parameter.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "core/base/torch_random.hpp"

namespace attn {

/// Half-width of nn.Linear's weight: kaiming_uniform_(a = sqrt(5)) over fan_in. In double and in
/// this order, since PyTorch computes it so before uniform_ rounds it to the tensor's type.
inline double linear_weight_bound(std::size_t fan_in) {
    const double a = std::sqrt(5.0);
    const double gain = std::sqrt(2.0 / (1.0 + a * a));
    return std::sqrt(3.0) * (gain / std::sqrt(static_cast<double>(fan_in)));
}

/// Half-width of nn.Linear's bias: 1 / sqrt(fan_in).
inline double linear_bias_bound(std::size_t fan_in) {
    return 1.0 / std::sqrt(static_cast<double>(fan_in));
}

/// Half-width of xavier_uniform_: sqrt(3) * sqrt(2 / (fan_in + fan_out)).
inline double xavier_bound(std::size_t fan_in, std::size_t fan_out) {
    return std::sqrt(3.0) * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}

/// `tensor.uniform_(-bound, bound)`.
template <class T>
void fill_uniform(TorchGenerator& generator, std::span<T> out, double bound) {
    for (T& value : out) value = generator.uniform<T>(-bound, bound);
}

/// `torch.rand(...)`.
template <class T>
void fill_rand(TorchGenerator& generator, std::span<T> out) {
    for (T& value : out) value = generator.uniform01<T>();
}

}  // namespace attn
