#include "core/layer/weights.hpp"

namespace attn {
namespace {

template <class T>
Projection<T> make_projection(const Settings& settings, std::size_t groups, std::size_t fan_in,
                              std::size_t fan_out, bool bias) {
    auto p = allocated<T>({groups, fan_in, fan_out, bias, settings.init == Init::rand});
    p.bias.fill(T{0});
    return p;
}

template <class T>
std::span<T> group_of(Projection<T>& p, std::size_t group) {
    const std::size_t size = p.weight.shape(1) * p.weight.shape(2);
    return {p.weight.data() + group * size, size};
}

template <class T>
std::span<T> bias_of(Projection<T>& p, std::size_t group) {
    if (!p.has_bias()) return {};
    return {p.bias.data() + group * p.bias.shape(1), p.bias.shape(1)};
}

/// One weight, then its bias. `rand` draws a bias as torch.rand, `xavier` leaves it zero: its rule
/// is defined for matrices only, and PyTorch's own layers zero the bias.
template <class T>
void draw(Init init, Projection<T>& p, std::size_t group, TorchGenerator& generator) {
    const std::span<T> weight = group_of(p, group);
    const std::span<T> bias = bias_of(p, group);
    if (init == Init::rand) {
        fill_rand(generator, weight);
        fill_rand(generator, bias);
        return;
    }
    const std::size_t fan_out = p.weight.shape(1);
    const std::size_t fan_in = p.weight.shape(2);
    if (init == Init::xavier) {
        fill_uniform(generator, weight, xavier_bound(fan_in, fan_out));
        return;
    }
    fill_uniform(generator, weight, linear_weight_bound(fan_in));
    fill_uniform(generator, bias, linear_bias_bound(fan_in));
}

/// nn.MultiheadAttention: out_proj is built first, as nn.Linear; then the three projections are
/// filled as one (3E, E) matrix; all biases are set to zero at the end.
template <class T>
void draw_mha(LayerWeights<T>& weights, TorchGenerator& generator) {
    draw(Init::linear, *weights.out, 0, generator);
    weights.out->bias.fill(T{0});
    const std::size_t embed_dim = weights.query.weight.shape(2);
    const double bound = xavier_bound(embed_dim, 3 * embed_dim);
    for (Projection<T>* p : {&weights.query, &weights.key, &weights.value})
        fill_uniform(generator, group_of(*p, 0), bound);
}

}  // namespace

template <class T>
LayerWeights<T> draw_weights(const Settings& settings, const WeightSizes& sizes,
                             std::optional<TorchGenerator>& generator) {
    const auto input_projection = [&](std::size_t fan_in, std::size_t fan_out) {
        return make_projection<T>(settings, sizes.groups, fan_in, fan_out, settings.qkv_bias);
    };
    LayerWeights<T> weights{input_projection(sizes.d_in, sizes.query),
                            input_projection(sizes.d_context, sizes.key),
                            input_projection(sizes.d_context, sizes.value), std::nullopt};
    if (*settings.out_proj)
        weights.out =
            make_projection<T>(settings, 1, sizes.joined, sizes.d_out, *settings.out_bias);
    if (!generator) return weights;
    if (settings.init == Init::mha) {
        draw_mha(weights, *generator);
        return weights;
    }
    for (std::size_t group = 0; group < sizes.groups; ++group)
        for (Projection<T>* p : {&weights.query, &weights.key, &weights.value})
            draw(settings.init, *p, group, *generator);
    if (weights.out) draw(settings.init, *weights.out, 0, *generator);
    return weights;
}

template LayerWeights<float> draw_weights(const Settings&, const WeightSizes&,
                                          std::optional<TorchGenerator>&);
template LayerWeights<double> draw_weights(const Settings&, const WeightSizes&,
                                           std::optional<TorchGenerator>&);

}  // namespace attn
