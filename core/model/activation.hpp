// The activation functions of feed-forward parts, one row each, by their names in transformers.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace attn {

struct Activation {
    std::string_view name;
    double (*of)(double x);
};

/// All of them, in the order of errors.
std::span<const Activation> activations();

/// The function of this name, or null.
const Activation* find_activation(std::string_view name);

double sigmoid(double x);
double silu(double x);
double softplus(double x);  ///< log(1 + e^x), x above 20 as torch.nn.functional.softplus

}  // namespace attn
