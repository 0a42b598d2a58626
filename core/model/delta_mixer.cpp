#include "core/model/delta_mixer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/linear/linear.hpp"
#include "core/model/cost.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

/// Zeros the rows of tokens that the attention mask excludes.
template <class T>
Tensor3<T> valid_rows(const BlockRun<T>& run, const Tensor3<T>& x) {
    Tensor3<T> out = x;
    for (std::size_t t = 0; t < x.shape(1) && !run.valid_keys.empty(); ++t)
        if (!run.valid_keys[run.past + t])
            std::fill_n(out.data() + t * x.shape(2), x.shape(2), T{0});
    return out;
}

template <class T>
Tensor3<T> through(const Compute& compute, const std::vector<LinearMap>& maps,
                   const Tensor3<T>& x) {
    Tensor3<T> y = apply(compute, maps.front(), x);
    for (std::size_t i = 1; i < maps.size(); ++i) y = apply(compute, maps[i], y);
    return y;
}

/// The maps' outputs next to each other, in the given order of columns.
template <class T>
Tensor3<T> side_by_side(const Compute& compute, const std::vector<LinearMap>& maps,
                        const std::vector<std::size_t>& order, const Tensor3<T>& x) {
    std::size_t width = 0;
    for (const LinearMap& map : maps) width += map.d_out;
    const std::size_t tokens = x.shape(1);
    Tensor3<T> joined = Tensor3<T>::from_shape({1, tokens, width});
    std::size_t first = 0;
    for (const LinearMap& map : maps) {
        const Tensor3<T> y = apply(compute, map, x);
        for (std::size_t t = 0; t < tokens; ++t)
            std::copy_n(y.data() + t * map.d_out, map.d_out, joined.data() + t * width + first);
        first += map.d_out;
    }
    if (order.empty()) return joined;
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, order.size()});
    for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t i = 0; i < order.size(); ++i)
            out.data()[t * order.size() + i] = joined.data()[t * width + order[i]];
    return out;
}

/// The first `channels` columns of each row, convolved over the tokens. Rows of earlier tokens are
/// in the cache, or zeros.
template <class T>
Tensor3<T> convolve(BlockRun<T>& run, const ShortConvolution& part, const Tensor3<T>& x,
                    std::size_t channels) {
    const std::size_t tokens = x.shape(1), taps = part.taps, before = taps - 1, width = x.shape(2);
    std::vector<double> weight;
    for (const Parameter& own : part.weights) {
        const std::vector<double> values = elements_of(own);
        weight.insert(weight.end(), values.begin(), values.end());
    }
    const std::vector<double> bias = elements_of(part.bias);
    Tensor3<T> all = Tensor3<T>::from_shape({1, before + tokens, channels});
    std::fill_n(all.data(), before * channels, T{0});
    if (run.cache != nullptr && !run.cache->last_rows.empty())
        std::copy_n(run.cache->last_rows.front().data(), before * channels, all.data());
    for (std::size_t t = 0; t < tokens; ++t)
        std::copy_n(x.data() + t * width, channels, all.data() + (before + t) * channels);
    if (run.cache != nullptr) {
        Tensor3<T> last = Tensor3<T>::from_shape({1, before, channels});
        std::copy_n(all.data() + tokens * channels, before * channels, last.data());
        run.cache->last_rows.clear();
        run.cache->last_rows.push_back(std::move(last));
    }
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, channels});
    for_rows(run.compute.pool, tokens, channels * taps, [&](std::size_t first, std::size_t end) {
        for (std::size_t t = first; t < end; ++t)
            for (std::size_t c = 0; c < channels; ++c) {
                double sum = bias.empty() ? 0 : bias[c];
                for (std::size_t j = 0; j < taps; ++j)
                    sum += weight[c * taps + j] *
                           static_cast<double>(all.data()[(t + j) * channels + c]);
                if (part.activation != nullptr) sum = part.activation->of(sum);
                out.data()[t * channels + c] = static_cast<T>(sum);
            }
    });
    return out;
}

/// Of columns [first, first + heads * d), with each head for `repeats` others; divided by their
/// length if `is_normed`.
template <class T>
Tensor4<T> heads_of(const Tensor3<T>& x, std::size_t first, std::size_t heads, std::size_t d,
                    std::size_t repeats, bool is_normed) {
    constexpr double eps = 1e-6;
    const std::size_t tokens = x.shape(1), width = x.shape(2);
    Tensor4<T> out = Tensor4<T>::from_shape({1, heads * repeats, tokens, d});
    for (std::size_t h = 0; h < heads * repeats; ++h)
        for (std::size_t t = 0; t < tokens; ++t) {
            const T* const from = x.data() + t * width + first + h / repeats * d;
            T* const to = out.data() + (h * tokens + t) * d;
            double squares = 0;
            for (std::size_t i = 0; i < d && is_normed; ++i)
                squares += static_cast<double>(from[i]) * static_cast<double>(from[i]);
            const double factor = is_normed ? 1 / std::sqrt(squares + eps) : 1;
            for (std::size_t i = 0; i < d; ++i)
                to[i] = static_cast<T>(static_cast<double>(from[i]) * factor);
        }
    return out;
}

/// The maps one after the other, with all of their outputs.
PartCost cost_of_maps(const std::vector<LinearMap>& maps, const PartSize& size) {
    PartCost cost;
    for (const LinearMap& map : maps) {
        const PartCost own = cost_of(map, size.tokens, size);
        cost.flops += own.flops;
        cost.bytes += own.bytes;
    }
    return cost;
}

/// A record of `context_vectors`.
void record_context(PartCost& cost, const PartSize& size) {
    if (!size.wanted->has("context_vectors")) return;
    cost.numbers += static_cast<double>(size.tokens * size.width);
    cost.recorded = cost.numbers * size.element();
}

class DeltaMixer final : public OtherMixer {
public:
    explicit DeltaMixer(DeltaPart part) : part_(std::move(part)) {}

    Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const override {
        return mix(run, x);
    }
    Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const override {
        return mix(run, x);
    }

    PartCost cost(const PartSize& size) const override {
        const double e = size.element(), tokens = static_cast<double>(size.tokens);
        const std::size_t heads = part_.value_heads, keys = part_.key_heads * part_.d_k,
                          values = heads * part_.d_v;
        const double state = static_cast<double>(heads * part_.d_k * part_.d_v);
        const PartCost inputs = cost_of_maps(part_.inputs, size),
                       gate = cost_of_maps(part_.gate, size),
                       decay = cost_of_maps(part_.decay, size),
                       beta = cost_of(part_.beta, size.tokens, size),
                       out = cost_of(part_.out, size.tokens, size);
        PartCost cost;
        // Each token decays the state, corrects it by what it predicts, and reads it.
        cost.flops = inputs.flops + gate.flops + decay.flops + beta.flops + out.flops +
                     2 * tokens * state * 3 +
                     2 * tokens * static_cast<double>((2 * keys + values) * part_.convolution.taps);
        // Queries, keys and values: side by side twice, convolved twice, and in heads; the context.
        const double columns =
            static_cast<double>(4 * (2 * keys + values) + 2 * heads * part_.d_k + 2 * values +
                                part_.decay_bias.size() + heads + size.width);
        cost.numbers = size.wanted->has("recurrent_state") ? state : 0;
        cost.bytes = tokens * columns * e + state * e + gate.bytes + decay.bytes + beta.bytes +
                     std::max(inputs.bytes / 2, out.bytes);
        if (size.is_cached) cost.cached = state * e;
        cost.recorded = cost.numbers * e;
        record_context(cost, size);
        cost.bytes += cost.recorded;
        return cost;
    }

private:
    template <class T>
    Tensor3<T> mix(BlockRun<T>& run, const Tensor3<T>& given) const {
        const Compute& compute = run.compute;
        const Tensor3<T> x = valid_rows(run, given);
        const std::size_t heads = part_.value_heads, keys = part_.key_heads * part_.d_k,
                          values = heads * part_.d_v, tokens = x.shape(1),
                          repeats = heads / part_.key_heads;
        const Tensor3<T> inputs = side_by_side(compute, part_.inputs, part_.input_order, x);
        const Tensor3<T> mixed = convolve(run, part_.convolution, inputs, 2 * keys + values);
        AttentionCall<T> call;
        call.query = heads_of(mixed, 0, part_.key_heads, part_.d_k, repeats, true);
        call.key = heads_of(mixed, keys, part_.key_heads, part_.d_k, repeats, true);
        call.value = heads_of(mixed, 2 * keys, heads, part_.d_v, 1, false);
        call.scale = 1 / std::sqrt(static_cast<double>(part_.d_k));
        add_gates(run, x, call);
        Tensor3<T> context = attend(run, call);

        const Tensor3<T> own = part_.gate.empty() ? Tensor3<T>() : through(compute, part_.gate, x);
        const Tensor3<T>& gate = part_.gate.empty() ? inputs : own;
        const std::size_t first = part_.gate.empty() ? 2 * keys + values : 0;
        norm_rows(compute, part_.norm, part_.d_v, std::span<T>(context.data(), context.size()));
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t i = 0; i < values; ++i) {
                T& y = context.data()[t * values + i];
                const auto g = static_cast<double>(gate.data()[t * gate.shape(2) + first + i]);
                y = static_cast<T>(static_cast<double>(y) *
                                   (part_.gate_is_silu ? silu(g) : sigmoid(g)));
            }
        Tensor3<T> out = apply(compute, part_.out, context);
        if (run.wanted.has("context_vectors"))
            run.record("context_vectors", Array<T>(Tensor3<T>(out), {tokens, out.shape(2)}),
                       {"q_len", "d_out"});
        return out;
    }

    template <class T>
    void add_gates(const BlockRun<T>& run, const Tensor3<T>& x, AttentionCall<T>& call) const {
        const Compute& compute = run.compute;
        const std::size_t heads = part_.value_heads, tokens = x.shape(1);
        const Tensor3<T> beta = side_by_side(compute, {part_.beta}, part_.beta_order, x);
        const bool has_own = !part_.decay.empty();
        const Tensor3<T> own = has_own ? through(compute, part_.decay, x) : Tensor3<T>();
        const Tensor3<T>& decay = has_own ? own : beta;
        const std::size_t first = has_own ? 0 : heads, columns = part_.decay_bias.size() / heads;
        call.recurrence.beta = Tensor4<T>::from_shape({1, heads, tokens, 1});
        call.recurrence.decay = Tensor4<T>::from_shape({1, heads, tokens, columns});
        for (std::size_t h = 0; h < heads; ++h) {
            const double rate = std::exp(part_.decay_log[h]);
            for (std::size_t t = 0; t < tokens; ++t) {
                const auto b = static_cast<double>(beta.data()[t * beta.shape(2) + h]);
                call.recurrence.beta.data()[h * tokens + t] =
                    static_cast<T>(part_.beta_factor * sigmoid(b));
                for (std::size_t i = 0; i < columns; ++i) {
                    const std::size_t at = h * columns + i;
                    const double a =
                        static_cast<double>(decay.data()[t * decay.shape(2) + first + at]) +
                        part_.decay_bias[at];
                    const double log = part_.least_decay ? *part_.least_decay * sigmoid(rate * a)
                                                         : -rate * softplus(a);
                    call.recurrence.decay.data()[(h * tokens + t) * columns + i] =
                        static_cast<T>(std::exp(log));
                }
            }
        }
    }

    /// The heads' outputs next to each other. Records the state after the last token.
    template <class T>
    Tensor3<T> attend(BlockRun<T>& run, AttentionCall<T>& call) const {
        const std::size_t heads = part_.value_heads, tokens = call.key.shape(2), d_v = part_.d_v;
        if (run.cache != nullptr && run.cache->state.size() != 0)
            call.recurrence.past_state = run.cache->state;
        Tensor3<T> context = Tensor3<T>::from_shape({1, tokens, heads * d_v});
        Tensor4<T> state = Tensor4<T>::from_shape({1, heads, part_.d_k, d_v});
        LinearOutputs<T> outputs;
        outputs.context = HeadRows<T>{context.data(), tokens * heads * d_v, d_v, heads * d_v};
        outputs.present_state = state.data();
        const Backend& products = *run.compute.products;
        if (products.is_fused() && products.name != "generic")
            attend_chunked(*products.kernel, call, outputs, run.compute.pool);
        else
            attend_sequential(call, outputs, run.compute.pool);
        if (run.wanted.has("recurrent_state"))
            run.record("recurrent_state",
                       Array<T>(Tensor3<T>(Tensor4<T>(state), {heads, part_.d_k, d_v}),
                                {heads, part_.d_k, d_v}),
                       {"heads", "d_k", "d_v"});
        if (run.cache != nullptr) run.cache->state = std::move(state);
        return context;
    }

    DeltaPart part_;
};

class ConvolutionMixer final : public OtherMixer {
public:
    explicit ConvolutionMixer(ShortConvolutionPart part) : part_(std::move(part)) {}

    Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const override {
        return mix(run, x);
    }
    Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const override {
        return mix(run, x);
    }

    PartCost cost(const PartSize& size) const override {
        const double row = static_cast<double>(size.tokens * size.width) * size.element();
        const PartCost input = cost_of(part_.input, size.tokens, size),
                       out = cost_of(part_.out, size.tokens, size);
        PartCost cost;
        cost.flops = input.flops + out.flops +
                     2 * static_cast<double>(size.tokens * size.width * part_.convolution.taps);
        // The valid rows and the three parts; the product, twice convolved.
        record_context(cost, size);
        cost.bytes = row + input.bytes + 3 * row + out.bytes + cost.recorded;
        return cost;
    }

private:
    template <class T>
    Tensor3<T> mix(BlockRun<T>& run, const Tensor3<T>& x) const {
        const Tensor3<T> parts = apply(run.compute, part_.input, valid_rows(run, x));
        const std::size_t tokens = x.shape(1), width = parts.shape(2) / 3;
        Tensor3<T> product = Tensor3<T>::from_shape({1, tokens, width});
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t i = 0; i < width; ++i) {
                const T* const row = parts.data() + t * 3 * width;
                product.data()[t * width + i] = row[i] * row[2 * width + i];
            }
        Tensor3<T> mixed = convolve(run, part_.convolution, product, width);
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t i = 0; i < width; ++i)
                mixed.data()[t * width + i] *= parts.data()[t * 3 * width + width + i];
        Tensor3<T> out = apply(run.compute, part_.out, mixed);
        if (run.wanted.has("context_vectors"))
            run.record("context_vectors", Array<T>(Tensor3<T>(out), {tokens, out.shape(2)}),
                       {"q_len", "d_out"});
        return out;
    }

    ShortConvolutionPart part_;
};

}  // namespace

std::shared_ptr<const OtherMixer> make_delta_mixer(DeltaPart part) {
    return std::make_shared<const DeltaMixer>(std::move(part));
}

std::shared_ptr<const OtherMixer> make_convolution_mixer(ShortConvolutionPart part) {
    return std::make_shared<const ConvolutionMixer>(std::move(part));
}

}  // namespace attn
