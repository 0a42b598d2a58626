#include "core/model/attention_arrays.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/picked.hpp"
#include "core/model/activation.hpp"
#include "core/model/attention_settings.hpp"
#include "core/operator/rope.hpp"

namespace attn {
namespace {

/// The base whose angles these are: base^(-2i/dims). Nothing if they are scaled or of another form.
std::optional<double> base_of(const Rotation& rotation) {
    const std::vector<double>& angles = rotation.frequencies;
    if (angles.size() < 2 || rotation.table != nullptr || rotation.position_step != 1 ||
        rotation.factor != 1 || !(angles[1] > 0))
        return {};
    double base = std::pow(angles[1], -static_cast<double>(angles.size()));
    constexpr double near = 1e-9;
    if (std::abs(base - std::round(base)) <= near * base) base = std::round(base);
    const std::vector<double> expected = rope_frequencies(base, 2 * angles.size(), {});
    for (std::size_t i = 0; i < angles.size(); ++i)
        if (!(std::abs(angles[i] - expected[i]) <= near * expected[i])) return {};
    return base;
}

}  // namespace

LayerAttention described(const AttentionPart& part, const Plan& plan, bool is_cross,
                         std::string prefix) {
    LayerAttention attention{.part = std::move(prefix), .plan = plan};
    if (!part.rotation || is_cross) return attention;
    attention.rope_pairs = part.rotation->pairs;
    attention.rope_dims = 2 * part.rotation->frequencies.size();
    attention.rope_base = base_of(*part.rotation);
    return attention;
}

Array<double> joined_mask(const AttentionPart& part, const std::vector<bool>& encoder,
                          const std::vector<bool>& own, std::size_t past, std::size_t q_len,
                          std::size_t kv_len, std::size_t before) {
    if (!part.window_left && encoder.empty() && own.empty()) return {};
    const auto is_valid = [&](std::size_t k) {
        if (k < before) return encoder.empty() || encoder[k];
        return own.empty() || own[k - before];
    };
    Array<double> mask = Array<double>::from_shape({q_len, kv_len});
    for (std::size_t q = 0; q < q_len; ++q)
        for (std::size_t k = 0; k < kv_len; ++k)
            mask(q, k) = is_valid(k) &&
                         (k < before || !part.window_left ||
                          past + q <= k - before + static_cast<std::size_t>(*part.window_left));
    return mask;
}

template <class T>
std::pair<Array<T>, Array<T>> parted(const Array<T>& weights, std::size_t before) {
    const std::size_t heads = weights.shape(0), q_len = weights.shape(1), all = weights.shape(2);
    Array<T> first = Array<T>::from_shape({heads, q_len, before}),
             last = Array<T>::from_shape({heads, q_len, all - before});
    for (std::size_t row = 0; row < heads * q_len; ++row) {
        const T* const from = weights.data() + row * all;
        std::copy_n(from, before, first.data() + row * before);
        std::copy_n(from + before, all - before, last.data() + row * (all - before));
    }
    return {std::move(first), std::move(last)};
}

template <class T>
Array<T> without_batch(Tensor4<T> x) {
    const std::vector<std::size_t> shape{x.shape(1), x.shape(2), x.shape(3)};
    return Array<T>(Tensor3<T>(std::move(x), {shape[0], shape[1], shape[2]}), shape);
}

template <class T>
void record_heads(BlockRun<T>& run, std::string_view name, const Tensor4<T>& x, std::size_t heads,
                  std::string_view rows) {
    if (!run.wanted.has(name)) return;
    check_heads(run.wanted, heads, run.block.layer);
    Array<T> values = without_batch(Tensor4<T>(x));
    std::vector<std::size_t> chosen;
    for (const std::uint64_t head : run.wanted.heads)
        chosen.push_back(static_cast<std::size_t>(head) * x.shape(1) / heads);
    if (!chosen.empty()) values = picked(values, 0, chosen);
    run.record(name, std::move(values), {"heads", rows, "d_k"});
}

template <class T>
void gate_bias(const Compute& compute, const AttentionPart& part, const Tensor3<T>& x,
               Array<double>& bias) {
    const std::size_t tokens = x.shape(1), heads = part.heads, keys = bias.shape(2);
    Tensor3<T> rows = Tensor3<T>::from_shape({1, tokens * heads, x.shape(2) / heads});
    std::copy_n(x.data(), x.size(), rows.data());
    const Tensor3<T> mapped = apply(compute, part.bias_gate->map, rows);
    for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t h = 0; h < heads; ++h) {
            const T* const of = mapped.data() + (t * heads + h) * 8;
            double sums[2] = {0, 0};
            for (std::size_t i = 0; i < 8; ++i) sums[i / 4] += static_cast<double>(of[i]);
            const double gate =
                sigmoid(sums[0]) * (sigmoid(sums[1]) * part.bias_gate->constants[h] - 1) + 2;
            for (std::size_t k = 0; k < keys; ++k) bias(h, t, k) *= gate;
        }
}

template Array<float> without_batch(Tensor4<float>);
template Array<double> without_batch(Tensor4<double>);
template void record_heads(BlockRun<float>&, std::string_view, const Tensor4<float>&, std::size_t,
                           std::string_view);
template void record_heads(BlockRun<double>&, std::string_view, const Tensor4<double>&, std::size_t,
                           std::string_view);
template std::pair<Array<float>, Array<float>> parted(const Array<float>&, std::size_t);
template std::pair<Array<double>, Array<double>> parted(const Array<double>&, std::size_t);
template void gate_bias(const Compute&, const AttentionPart&, const Tensor3<float>&,
                        Array<double>&);
template void gate_bias(const Compute&, const AttentionPart&, const Tensor3<double>&,
                        Array<double>&);

}  // namespace attn
