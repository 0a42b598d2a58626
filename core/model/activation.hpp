// The activation functions of feed-forward layers, one row each, by their names in transformers.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace attn {

struct Activation {
    std::string_view name;
    double (*of)(double x);
};

/// All functions, in the order in which errors list them.
std::span<const Activation> activations();

/// The function with this name, or null.
const Activation* find_activation(std::string_view name);

double sigmoid(double x);
double silu(double x);
double softplus(double x);  ///< log(1 + e^x); x if x > 20, as in torch.nn.functional.softplus

}  // namespace attn
