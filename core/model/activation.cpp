#include "core/model/activation.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

namespace attn {
namespace {

double gelu(double x) {
    return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
}
double gelu_tanh(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
double quick_gelu(double x) {
    return x * sigmoid(1.702 * x);
}
double relu(double x) {
    return x > 0 || std::isnan(x) ? x : 0.0;
}
/// Huang et al. 2024, arXiv 2411.13010, with the numbers that training begins with.
double xielu(double x) {
    if (x > 0) return 0.8 * x * x + 0.5 * x;
    return (std::expm1(std::min(x, -1e-6)) - x) * 0.8 + 0.5 * x;
}
double relu_squared(double x) {
    return relu(x) * relu(x);
}
// Sources: torch.nn.functional; transformers' activations.py.
constexpr Activation activation_rows[] = {
    {"gelu", gelu},
    {"gelu_new", gelu_tanh},
    {"gelu_pytorch_tanh", gelu_tanh},
    {"gelu_fast", gelu_tanh},
    {"gelu_python", gelu},
    {"gelu_accurate", gelu_tanh},
    {"quick_gelu", quick_gelu},
    {"silu", silu},
    {"swish", silu},
    {"relu", relu},
    {"relu2", relu_squared},
    {"relu6", [](double x) { return std::min(relu(x), 6.0); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"sigmoid", sigmoid},
    {"linear", [](double x) { return x; }},
    {"gelu_10", [](double x) { return std::clamp(gelu(x), -10.0, 10.0); }},
    {"xielu", xielu},
    {"mish", [](double x) { return x * std::tanh(softplus(x)); }},
    {"gelu_python_tanh", gelu_tanh},
    {"hardswish", [](double x) { return x * std::min(relu(x + 3), 6.0) / 6; }},
    {"leaky_relu", [](double x) { return x >= 0 || std::isnan(x) ? x : 0.01 * x; }},
    {"laplace",
     [](double x) {
         return 0.5 * (1 + std::erf((x - 0.707107) / (0.282095 * std::numbers::sqrt2)));
     }},
    {"sqrtsoftplus", [](double x) { return std::sqrt(softplus(x)); }},
};

}  // namespace

std::span<const Activation> activations() {
    return activation_rows;
}

const Activation* find_activation(std::string_view name) {
    const auto found = std::find_if(std::begin(activation_rows), std::end(activation_rows),
                                    [&](const Activation& row) { return row.name == name; });
    return found == std::end(activation_rows) ? nullptr : &*found;
}

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
double silu(double x) {
    return x * sigmoid(x);
}
double softplus(double x) {
    return x > 20 ? x : std::log1p(std::exp(x));
}

}  // namespace attn
