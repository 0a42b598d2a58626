#include <cmath>
#include <numbers>

#include "core/base/error.hpp"
#include "core/base/names.hpp"
#include "core/model/run_block.hpp"

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
/// Huang et al. 2024, arXiv 2411.13010. `n`: alpha above 0, alpha below 0, beta, eps.
double xielu(double x, const double* n) {
    if (x > 0) return n[0] * x * x + n[2] * x;
    return (std::expm1(std::min(x, n[3])) - x) * n[1] + n[2] * x;
}
/// The numbers that training begins with.
constexpr double first_xielu[] = {0.8, 0.8, 0.5, -1e-6};
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
    {"xielu", [](double x) { return xielu(x, first_xielu); }},
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

double activate(const FeedForward& part, double x) {
    if (part.alpha != 0) return x * sigmoid(part.alpha * x);
    if (part.activation_numbers.empty()) return part.activation->of(x);
    return xielu(x, part.activation_numbers.data());
}

/// Where the gate and the up part of a column are in a row of both.
struct JoinedColumns {
    JoinedColumns(FeedForward::Joined joined, std::size_t width) {
        switch (joined) {
            case FeedForward::Joined::gate_first: first_up = width; break;
            case FeedForward::Joined::up_first: first_gate = width; break;
            case FeedForward::Joined::interleaved: step = 2, first_up = 1; break;
            case FeedForward::Joined::no: break;
        }
    }
    std::size_t step = 1, first_gate = 0, first_up = 0;
};

/// The gate less the mean and `z` standard deviations of its row, at least 0 (Gemma 3n).
void make_sparse(double z, States& gate) {
    const std::size_t width = gate.columns(), rows = gate.rows();
    numbers_of(gate)([&]<class T>(T* row) {
        for (const T* const end = row + rows * width; row != end; row += width) {
            double mean = 0, squares = 0;
            for (std::size_t i = 0; i < width; ++i) mean += static_cast<double>(row[i]);
            mean /= static_cast<double>(width);
            for (std::size_t i = 0; i < width; ++i) {
                const double centred = static_cast<double>(row[i]) - mean;
                squares += centred * centred;
            }
            const double cutoff = mean + std::sqrt(squares / static_cast<double>(width)) * z;
            for (std::size_t i = 0; i < width; ++i)
                row[i] = static_cast<T>(std::max(0.0, static_cast<double>(row[i]) - cutoff));
        }
    });
}

}  // namespace

std::span<const Activation> activations() {
    return activation_rows;
}

const Activation* find_activation(std::string_view name) {
    return find_row(activation_rows, &Activation::name, name);
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

States run_feed_forward(const Compute& compute, const FeedForward& part, const States& x) {
    States up = apply(compute, part.up, x);
    const bool is_joined = part.joined != FeedForward::Joined::no;
    const bool is_gated = is_joined || part.gate;
    States gate = part.gate ? apply(compute, part.gate, x) : States();
    if (is_joined ? up.columns() % 2 != 0 : is_gated && gate.columns() != up.columns())
        throw Error(ErrorKind::input, "model",
                    "the gate and up projections of a feed-forward layer have different widths; "
                    "expected equal widths");
    if (part.is_sparse) make_sparse(part.sparsity_z, gate);
    const std::size_t rows = x.rows(), all = up.columns(), width = all / (is_joined ? 2 : 1);
    const JoinedColumns at(part.joined, width);
    const NumberType dtype = x.dtype();
    const bool rounds = is_rounded(dtype);
    States inner = is_joined ? States(x.dtype(), 1, rows, width) : States();
    States& result = is_joined ? inner : up;
    const auto run_row = [&]<class T>(std::size_t row, T* out, const T* ups, const T* gates) {
        out += row * width;
        ups += row * all;
        gates = gates == nullptr ? ups : gates + row * width;
        for (std::size_t i = 0; i < width; ++i) {
            auto u = static_cast<double>(ups[at.step * i + at.first_up]);
            if (!is_gated) {
                out[i] = static_cast<T>(activate(part, u));
                continue;
            }
            auto g = static_cast<double>(gates[at.step * i + at.first_gate]);
            if (part.limit != 0) {
                g = std::min(g, part.limit);
                u = std::clamp(u, -part.limit, part.limit);
            }
            const double activated = activate(part, g);
            out[i] = static_cast<T>((rounds ? rounded(activated, dtype) : activated) *
                                    (u + part.up_offset));
        }
    };
    for_each_row(compute, rows, width * 8, run_row, result, std::as_const(up), std::as_const(gate));
    gate = {};
    if (part.inner_norm) norm_rows(compute, *part.inner_norm, width, result);
    return apply(compute, part.down, result);
}

}  // namespace attn
