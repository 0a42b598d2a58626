// Attention layers: projections, heads, operator, output projection.
#include "core/layer.hpp"

#include <algorithm>
#include <utility>

#include <xtensor/xview.hpp>

#include "core/attention.hpp"
#include "core/dropout.hpp"
#include "core/geometry.hpp"
#include "core/heads.hpp"
#include "core/recorder.hpp"
#include "core/rope.hpp"
#include "core/torch_random.hpp"
#include "core/weights.hpp"

namespace attn {
namespace {

template <class T>
void keep_weights(const LayerWeights<T>& weights, const Settings& settings, Recorder& recorder) {
    const bool grouped = settings.style == Style::wrapper;
    const auto keep = [&](const std::string& name, const Projection<T>& p) {
        std::vector<std::string_view> axes{p.in_out ? "d_in" : "d_out",
                                           p.in_out ? "d_out" : "d_in"};
        std::vector<std::size_t> shape{p.weight.shape(1), p.weight.shape(2)};
        if (grouped) {
            axes.insert(axes.begin(), "heads");
            shape.insert(shape.begin(), p.weight.shape(0));
        }
        Array<T> weight = p.weight;
        recorder.keep_as_is("W_" + name, weight.reshape(shape), axes);
        if (!p.has_bias()) return;
        Array<T> bias = p.bias;
        if (!grouped) bias.reshape({p.bias.shape(1)});
        recorder.keep_as_is("b_" + name, bias,
                            grouped ? std::vector<std::string_view>{"heads", "d_out"}
                                    : std::vector<std::string_view>{"d_out"});
    };
    keep("query", weights.query);
    keep("key", weights.key);
    keep("value", weights.value);
    if (weights.out) keep("out", *weights.out);
}

/// The scaled keep mask of the weights (batch, heads, q_len, kv_len). The wrapper style is a row of
/// layers, each with a dropout of its own, so its heads are drawn one after the other.
template <class T>
Tensor4<T> draw_dropout(const Settings& settings, const Geometry& g,
                        TorchGenerator& weights_generator) {
    TorchGenerator own(settings.dropout_seed.value_or(Seed{}).bits);
    if (settings.dropout_seed) own.skip(settings.dropout_skip);
    TorchGenerator& generator = settings.dropout_seed ? own : weights_generator;

    DropoutExtent extent{g.batch,
                         g.heads,
                         g.q_len,
                         g.kv_len,
                         settings.token.value_or(0),
                         settings.token ? 1 : g.q_len};
    const auto draw = [&] {
        return dropout_mask<T>(settings.dropout, settings.dropout_stream, extent, generator);
    };
    if (settings.style != Style::wrapper) return draw();
    Tensor4<T> mask = Tensor4<T>::from_shape({g.batch, g.heads, extent.kept_rows, g.kv_len});
    extent.inner = 1;
    for (std::size_t head = 0; head < g.heads; ++head)
        xt::view(mask, xt::all(), xt::range(head, head + 1)) = draw();
    return mask;
}

/// An additive mask in T's own precision.
template <class T>
Array<double> rounded(const Array<double>& bias) {
    Array<double> result = bias;
    for (double& value : result) value = static_cast<double>(static_cast<T>(value));
    return result;
}

/// (batch, kv_len) or (kv_len) as what broadcasts to (batch, heads, q_len, kv_len).
Array<double> padding_as_mask(Array<double> padding) {
    const std::size_t keys = padding.shape(padding.dimension() - 1);
    padding.reshape({padding.size() / keys, std::size_t{1}, std::size_t{1}, keys});
    return padding;
}

/// The masks and score modifiers that the settings and operands ask for.
template <class T>
void add_rules(AttentionCall<T>& call, const Settings& s, const Operands& operands,
               const Geometry& g) {
    call.scale = *s.scale;
    call.mask_method = s.mask_method;
    call.first_query = s.token.value_or(0);
    call.offset = g.offset(s.causal_align.value_or(CausalAlign::top_left));
    call.sink = s.sink.size() == 1 ? std::vector<double>(g.heads, s.sink[0]) : s.sink;

    std::vector<Broadcast> biases;
    const auto add_mask = [&](const Array<double>& mask, bool is_boolean) {
        if (is_boolean) return call.mask.add(BooleanRule(mask, s.mask_true == MaskTrue::keep));
        biases.emplace_back(rounded<T>(mask), 0);
        call.mask.add(BiasRule(biases.back()));
    };
    if (operands.mask.dimension() != 0) add_mask(operands.mask, operands.mask_is_boolean);
    if (operands.key_padding_mask.dimension() != 0)
        add_mask(padding_as_mask(operands.key_padding_mask), operands.key_padding_mask_is_boolean);
    call.modifiers = score_modifiers(s, g.heads, biases);
    if (*s.causal) call.mask.add(BandRule(-1, 0, call.offset));
    if (!s.window.empty()) call.mask.add(BandRule(s.window[0], s.window[1], call.offset));
    if (!s.kv_lengths.empty()) call.mask.add(LengthRule(s.kv_lengths));
}

template <class T>
class Layer {
public:
    Layer(const Settings& settings, const Operands& operands)
        : settings_(settings), operands_(operands), g_(geometry_of(settings, operands)),
          generator_(settings.seed.bits),
          recorder_(settings.emit, g_.batched, g_.with_heads, settings.average_heads) {
        generator_.skip(settings.rng_skip);
    }

    Result run() {
        const std::size_t d_out = settings_.mode == Mode::sdpa ? run_operator() : run_layer();
        const Shapes shapes{g_.batch,  g_.heads, g_.kv_heads, call_.query.shape(2),
                            g_.kv_len, g_.d_in,  g_.d_k,      g_.d_v,
                            d_out};
        return {settings_, shapes, recorder_.take()};
    }

private:
    std::size_t run_operator() {
        call_.query = query_rows(unpack<T>(operands_.query, g_, g_.heads, g_.packed));
        call_.key = unpack<T>(operands_.key, g_, g_.kv_heads, g_.packed);
        call_.value = unpack<T>(operands_.value, g_, g_.kv_heads, g_.packed);
        const Tensor4<T> context = attend_heads();
        if (g_.packed)
            keep_without_heads("context_vectors", join_heads(context), "q_len", "d_out");
        else
            recorder_.keep("context_vectors", context, "q_len", "d_v");
        return g_.packed ? g_.heads * g_.d_v : g_.d_v;
    }

    std::size_t run_layer() {
        const Tensor3<T> x = as_batch<T>(operands_.inputs);
        const Tensor3<T> source =
            settings_.mode == Mode::cross ? as_batch<T>(operands_.context) : x;
        keep_inputs(x);
        std::optional<Projection<T>> output;
        if (settings_.init == Init::none) {
            call_.query = query_rows(heads_of_inputs(x));
            call_.key = call_.value = heads_of_inputs(source);
        } else {
            LayerWeights<T> weights = draw_weights<T>(settings_, weight_sizes(), generator_);
            keep_weights(weights, settings_, recorder_);
            call_.query = query_rows(split_heads(project(x, weights.query), g_.heads));
            call_.key = split_heads(project(source, weights.key), g_.kv_heads);
            call_.value = split_heads(project(source, weights.value), g_.kv_heads);
            output = std::move(weights.out);
        }
        const Tensor3<T> joined = join_heads(attend_heads());
        const Tensor3<T> context = output ? project(joined, *output) : joined;
        keep_without_heads("context_vectors", context, "q_len", "d_out");
        return context.shape(2);
    }

    WeightSizes weight_sizes() const {
        const bool wrapper = settings_.style == Style::wrapper;
        const std::size_t heads = wrapper ? 1 : g_.heads, kv_heads = wrapper ? 1 : g_.kv_heads;
        return {g_.d_in,           g_.d_context,   heads * g_.d_k,   kv_heads * g_.d_k,
                kv_heads * g_.d_v, heads * g_.d_v, *settings_.d_out, wrapper ? g_.heads : 1};
    }

    /// Without projections each head of the split style takes its own columns of the input; each
    /// head of the wrapper style is a layer by itself and takes all of them.
    Tensor4<T> heads_of_inputs(const Tensor3<T>& x) const {
        if (settings_.style == Style::split) return split_heads(x, g_.heads);
        Tensor4<T> copies = Tensor4<T>::from_shape({x.shape(0), g_.heads, x.shape(1), x.shape(2)});
        for (std::size_t head = 0; head < g_.heads; ++head) xt::view(copies, xt::all(), head) = x;
        return copies;
    }

    /// Only the query rows that were asked for.
    Tensor4<T> query_rows(const Tensor4<T>& queries) const {
        if (!settings_.token) return queries;
        return xt::view(queries, xt::all(), xt::all(),
                        xt::range(*settings_.token, *settings_.token + 1));
    }

    Tensor4<T> attend_heads() {
        if (settings_.rope) rotate_queries_and_keys();
        recorder_.keep("queries", call_.query, "q_len", "d_k");
        recorder_.keep("keys", call_.key, "kv_len", "d_k");
        recorder_.keep("values", call_.value, "kv_len", "d_v");
        if (g_.past_len != 0) {
            prepend(operands_.past_key, call_.key);
            prepend(operands_.past_value, call_.value);
        }
        recorder_.keep("present_key", call_.key, "kv_len", "d_k");
        recorder_.keep("present_value", call_.value, "kv_len", "d_v");
        add_rules(call_, settings_, operands_, g_);
        call_.dropout = draw_dropout<T>(settings_, g_, generator_);
        return attend(call_, recorder_);
    }

    /// New tokens stand after the cached ones, whose keys were rotated when they were new.
    void rotate_queries_and_keys() {
        const std::size_t dims = *settings_.rope_dims;
        rotate(call_.query, *settings_.rope, settings_.rope_base, dims,
               g_.past_len + settings_.token.value_or(0));
        rotate(call_.key, *settings_.rope, settings_.rope_base, dims, g_.past_len);
    }

    void prepend(const Array<double>& past, Tensor4<T>& fresh) const {
        const Tensor4<T> cached = unpack<T>(past, g_, g_.kv_heads, false);
        fresh = Tensor4<T>(xt::concatenate(xt::xtuple(cached, fresh), 2));
    }

    void keep_inputs(const Tensor3<T>& x) {
        if (!operands_.token_ids.empty()) {
            Array<std::int64_t> ids = Array<std::int64_t>::from_shape({operands_.token_ids.size()});
            std::copy(operands_.token_ids.begin(), operands_.token_ids.end(), ids.begin());
            recorder_.keep_as_is("token_ids", ids, {"tokens"});
        }
        keep_without_heads("inputs", x, "tokens", "d_in");
    }

    void keep_without_heads(std::string_view name, const Tensor3<T>& values, std::string_view rows,
                            std::string_view columns) {
        Array<T> shown = values;
        std::vector<std::string_view> axes{"batch", rows, columns};
        if (!g_.batched) {
            shown.reshape({values.shape(1), values.shape(2)});
            axes.erase(axes.begin());
        }
        recorder_.keep_as_is(name, std::move(shown), std::move(axes));
    }

    const Settings& settings_;
    const Operands& operands_;
    Geometry g_;
    TorchGenerator generator_;
    Recorder recorder_;
    AttentionCall<T> call_;
};

}  // namespace

Result compute(const Settings& settings, const Operands& operands) {
    return settings.dtype == Dtype::float32 ? Layer<float>(settings, operands).run()
                                            : Layer<double>(settings, operands).run();
}

}  // namespace attn
