#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

double activate(const FeedForward& part, double x) {
    if (part.alpha != 0) return x * sigmoid(part.alpha * x);
    if (part.activation_numbers.empty()) return part.activation->of(x);
    // xIELU: {alpha above 0, alpha below 0, beta, eps}. Huang et al. 2024, arXiv 2411.13010.
    const std::vector<double>& n = part.activation_numbers;
    if (x > 0) return n[0] * x * x + n[2] * x;
    return (std::expm1(std::min(x, n[3])) - x) * n[1] + n[2] * x;
}

/// Where the gate and the up part of column i are in a row of both.
std::pair<std::size_t, std::size_t> places(FeedForward::Joined joined, std::size_t i,
                                           std::size_t width) {
    switch (joined) {
        case FeedForward::Joined::gate_first: return {i, width + i};
        case FeedForward::Joined::up_first: return {width + i, i};
        case FeedForward::Joined::interleaved: return {2 * i, 2 * i + 1};
        case FeedForward::Joined::no: break;
    }
    return {i, i};
}

/// The gate less the mean and `z` standard deviations of its row, at least 0 (Gemma 3n).
template <class T>
void make_sparse(double z, Tensor3<T>& gate) {
    const std::size_t width = gate.shape(2);
    for (T* row = gate.data(); row != gate.data() + gate.size(); row += width) {
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
}

}  // namespace

template <class T>
Tensor3<T> run_feed_forward(const Compute& compute, const FeedForward& part, const Tensor3<T>& x) {
    Tensor3<T> up = apply(compute, part.up, x);
    const bool is_joined = part.joined != FeedForward::Joined::no;
    const bool is_gated = is_joined || part.gate;
    Tensor3<T> gate = part.gate ? apply(compute, part.gate, x) : Tensor3<T>();
    if (is_joined ? up.shape(2) % 2 != 0 : is_gated && gate.shape(2) != up.shape(2))
        throw Error(ErrorKind::input, "model",
                    "the gate and up projections of a feed-forward layer have different widths; "
                    "expected equal widths");
    if (part.is_sparse) make_sparse(part.sparsity_z, gate);
    const std::size_t rows = x.shape(1), width = up.shape(2) / (is_joined ? 2 : 1);
    Tensor3<T> inner = is_joined ? Tensor3<T>::from_shape({1, rows, width}) : Tensor3<T>();
    Tensor3<T>& result = is_joined ? inner : up;
    for_rows(compute.pool, rows, width * 8, [&](std::size_t first, std::size_t last) {
        for (std::size_t row = first; row < last; ++row) {
            const T* const ups = up.data() + row * up.shape(2);
            const T* const gates = is_joined || !is_gated ? ups : gate.data() + row * width;
            T* const out = result.data() + row * width;
            for (std::size_t i = 0; i < width; ++i) {
                const auto [at_gate, at_up] = places(part.joined, i, width);
                auto u = static_cast<double>(ups[at_up]);
                if (!is_gated) {
                    out[i] = static_cast<T>(activate(part, u));
                    continue;
                }
                auto g = static_cast<double>(gates[at_gate]);
                if (part.limit != 0) {
                    g = std::min(g, part.limit);
                    u = std::clamp(u, -part.limit, part.limit);
                }
                out[i] = static_cast<T>(activate(part, g) * (u + part.up_offset));
            }
        }
    });
    gate = {};
    if (part.inner_norm)
        norm_rows(compute, *part.inner_norm, width, std::span<T>(result.data(), result.size()));
    return apply(compute, part.down, result);
}

template Tensor3<float> run_feed_forward(const Compute&, const FeedForward&, const Tensor3<float>&);
template Tensor3<double> run_feed_forward(const Compute&, const FeedForward&,
                                          const Tensor3<double>&);

}  // namespace attn
