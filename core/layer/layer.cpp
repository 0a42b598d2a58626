// Attention layers: projections, heads, operator, output projection.
#include "core/layer/layer.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/torch_random.hpp"
#include "core/fused/attend_fused.hpp"
#include "core/fused/project_fused.hpp"
#include "core/layer/heads.hpp"
#include "core/layer/weights.hpp"
#include "core/operator/attention.hpp"
#include "core/operator/recorder.hpp"
#include "core/operator/rope.hpp"
#include "core/plan/backend.hpp"
#include "core/plan/shapes.hpp"

namespace attn {
namespace {

/// Independent heads keep their axis.
template <class T>
void keep_weights(const LayerWeights<T>& weights, Recorder& recorder) {
    const auto keep = [&](ArrayId weight_id, ArrayId bias_id, const Projection<T>& p) {
        if (recorder.wants(weight_id)) {
            std::vector<std::size_t> shape(p.weight.shape().begin(), p.weight.shape().end());
            if (recorder.axes_of(weight_id).size() < shape.size()) shape.erase(shape.begin());
            Array<T> weight(p.weight);
            weight.reshape(std::move(shape));
            recorder.keep_as_is(weight_id, std::move(weight), p.in_out);
        }
        if (p.has_bias() && recorder.wants(bias_id)) {
            std::vector<std::size_t> shape(p.bias.shape().begin(), p.bias.shape().end());
            if (recorder.axes_of(bias_id).size() < shape.size()) shape.erase(shape.begin());
            Array<T> bias(p.bias);
            bias.reshape(std::move(shape));
            recorder.keep_as_is(bias_id, std::move(bias));
        }
    };
    keep("W_query", "b_query", weights.query);
    keep("W_key", "b_key", weights.key);
    keep("W_value", "b_value", weights.value);
    if (weights.out) keep("W_out", "b_out", *weights.out);
}

/// Dropout begins where the weights' draws ended, unless it has a generator of its own. The wrapper
/// style is a row of layers, each with a dropout of its own.
Dropout dropout_of(const Settings& s, const Geometry& g, const TorchGenerator& weights_generator) {
    Dropout dropout{s.dropout, s.dropout_stream, s.style == Style::wrapper, g.q_len};
    if (s.dropout == 0) return dropout;
    dropout.generator = weights_generator;
    if (s.dropout_seed) {
        dropout.generator = TorchGenerator(s.dropout_seed->bits);
        dropout.generator->skip(*s.dropout_skip);
    }
    return dropout;
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

/// An operand that has no other use any more: it is gone once what is made from it is there.
Array<double> taken(Array<double>& operand) {
    return std::move(operand);
}

/// The masks and score modifiers that the settings and operands ask for.
template <class T>
void add_rules(AttentionCall<T>& call, const Settings& s, Operands& operands, const Geometry& g) {
    call.scale = *s.scale;
    call.softcap = s.softcap;
    call.alibi = s.alibi;
    call.mask_method = s.mask_method;
    call.first_query = s.token.value_or(0);
    call.offset = g.offset(s);
    call.sink = s.sink.size() == 1 ? std::vector<double>(g.heads, s.sink[0]) : s.sink;

    const auto add_mask = [&](const char* name, const Array<double>& mask, bool is_boolean) {
        if (is_boolean)
            call.mask.add(BooleanRule(mask, s.mask_true == MaskTrue::keep), name);
        else
            call.biases.emplace_back(rounded<T>(mask), 0);
    };
    if (operands.mask.dimension() != 0)
        add_mask("mask", taken(operands.mask), operands.mask_is_boolean);
    if (operands.key_padding_mask.dimension() != 0)
        add_mask("key_padding_mask", padding_as_mask(taken(operands.key_padding_mask)),
                 operands.key_padding_mask_is_boolean);
    if (*s.causal) call.mask.add(BandRule(-1, 0, call.offset), "causal");
    if (!s.window.empty()) call.mask.add(BandRule(s.window[0], s.window[1], call.offset), "window");
    if (!s.kv_lengths.empty()) call.mask.add(LengthRule(s.kv_lengths), "kv_lengths");
}

template <class T>
class Layer {
public:
    Layer(const Settings& settings, Operands& operands, ThreadPool& workers, bool may_stream)
        : settings_(settings), operands_(operands), workers_(workers), may_stream_(may_stream),
          g_(geometry_of(settings, operands)), kernels_(choose_kernels(settings, g_)),
          generator_(settings.seed.bits),
          recorder_(ArraySet::named(settings.emit), shown_axes(settings, g_)) {
        generator_.skip(settings.rng_skip);
    }

    Result run() {
        settings_.mode == Mode::sdpa ? run_operator() : run_layer();
        std::optional<AnyLayerWeights> weights;
        if (weights_ != nullptr) weights = weights_;
        return {settings_, shapes_of(settings_, g_), recorder_.take(), std::move(weights)};
    }

private:
    void run_operator() {
        call_.query = query_rows(unpack<T>(taken(operands_.query), g_, g_.heads, g_.packed));
        call_.key = unpack<T>(taken(operands_.key), g_, g_.kv_heads, g_.packed);
        call_.value = unpack<T>(taken(operands_.value), g_, g_.kv_heads, g_.packed);
        prepare_call();
        if (g_.packed)
            recorder_.keep("context_vectors", attend_and_join());
        else
            recorder_.keep("context_vectors", attend_by_heads());
    }

    void run_layer() {
        keep_token_ids();
        make_queries_keys_values();
        prepare_call();
        Tensor3<T> context = attend_and_join();
        if (weights_ != nullptr && weights_->out) context = project_out(context, *weights_->out);
        recorder_.keep("context_vectors", context);
    }

    /// Fills query, key and value of the call.
    void make_queries_keys_values() {
        Tensor3<T> x = as_batch<T>(taken(operands_.inputs));
        recorder_.keep("inputs", x);
        if (operands_.norm) {
            for (std::size_t at = 0; at < x.size(); at += g_.d_in)
                normalise(*operands_.norm, std::span<T>(x.data() + at, g_.d_in));
            recorder_.keep("normed_inputs", x);
        }
        Tensor3<T> context;
        if (settings_.mode == Mode::cross) context = as_batch<T>(taken(operands_.context));
        const Tensor3<T>& source = settings_.mode == Mode::cross ? context : x;
        if (settings_.init == Init::none) {
            call_.query = query_rows(heads_of_inputs(x));
            call_.key = call_.value = heads_of_inputs(source);
            return;
        }
        weights_ = given_or_drawn_weights();
        const LayerWeights<T>& weights = *weights_;
        keep_weights(weights, recorder_);
        const std::size_t heads = g_.heads, kv_heads = g_.kv_heads;
        if (kernels_.projections == nullptr) {
            call_.query = split_heads(project(x, weights.query), heads);
            call_.key = split_heads(project(source, weights.key), kv_heads);
            call_.value = split_heads(project(source, weights.value), kv_heads);
        } else {
            call_.query = room_for_heads(x, heads, g_.d_k);
            call_.key = room_for_heads(source, kv_heads, g_.d_k);
            call_.value = room_for_heads(source, kv_heads, g_.d_v);
            const ProjectionTo<T> all[] = {{weights.query, heads, rows_of(call_.query)},
                                           {weights.key, kv_heads, rows_of(call_.key)},
                                           {weights.value, kv_heads, rows_of(call_.value)}};
            const std::span<const ProjectionTo<T>> to(all);
            const std::size_t of_x = settings_.mode == Mode::cross ? 1 : 3;
            project_fused(*kernels_.projections, x, to.first(of_x), workers_);
            if (of_x == 1) project_fused(*kernels_.projections, source, to.last(2), workers_);
        }
        call_.query = query_rows(std::move(call_.query));
    }

    std::shared_ptr<const LayerWeights<T>> given_or_drawn_weights() {
        if (operands_.weights)
            return std::get<std::shared_ptr<const LayerWeights<T>>>(*operands_.weights);
        return std::make_shared<const LayerWeights<T>>(
            draw_weights<T>(settings_, weight_sizes(), generator_));
    }

    Tensor3<T> project_out(const Tensor3<T>& joined, const Projection<T>& output) {
        if (kernels_.projections == nullptr) return project(joined, output);
        Tensor3<T> context =
            Tensor3<T>::from_shape({joined.shape(0), joined.shape(1), output.d_out()});
        const std::size_t row = context.shape(2);
        const ProjectionTo<T> to{output, 1, {context.data(), context.shape(1) * row, 0, row}};
        project_fused(*kernels_.projections, joined, std::span(&to, 1), workers_);
        return context;
    }

    static Tensor4<T> room_for_heads(const Tensor3<T>& x, std::size_t heads, std::size_t width) {
        Tensor4<T> room = Tensor4<T>::from_shape({x.shape(0), heads, x.shape(1), width});
        return room;
    }

    static HeadRows<T> rows_of(Tensor4<T>& x) {
        const std::size_t row = x.shape(3), head = x.shape(2) * row;
        return {x.data(), x.shape(1) * head, head, row};
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
        return settings_.style == Style::split ? split_heads(x, g_.heads)
                                               : copy_for_heads(x, g_.heads);
    }

    /// Only the query rows that were asked for.
    Tensor4<T> query_rows(Tensor4<T> queries) const {
        if (!settings_.token) return queries;
        return row_of_heads(queries, *settings_.token);
    }

    /// Everything of the call but the queries, keys and values that are there already.
    void prepare_call() {
        recorder_.keep("unrotated_queries", call_.query);
        recorder_.keep("unrotated_keys", call_.key);
        if (settings_.rope) rotate_queries_and_keys();
        recorder_.keep("queries", call_.query);
        recorder_.keep("keys", call_.key);
        recorder_.keep("values", call_.value);
        if (g_.past_len != 0) {
            prepend(taken(operands_.past_key), call_.key);
            prepend(taken(operands_.past_value), call_.value);
        }
        recorder_.keep("present_key", call_.key);
        recorder_.keep("present_value", call_.value);
        add_rules(call_, settings_, operands_, g_);
        call_.dropout = dropout_of(settings_, g_, generator_);
    }

    /// New tokens stand after the cached ones, whose keys were rotated when they were new.
    void rotate_queries_and_keys() {
        const std::vector<double> frequencies =
            rope_frequencies(*settings_.rope_base, *settings_.rope_dims, settings_.rope_scaling);
        rotate(call_.query, *settings_.rope, frequencies,
               g_.past_len + settings_.token.value_or(0));
        rotate(call_.key, *settings_.rope, frequencies, g_.past_len);
    }

    void prepend(const Array<double>& past, Tensor4<T>& fresh) const {
        fresh = join_rows(unpack<T>(past, g_, g_.kv_heads, false), fresh);
    }

    /// (batch, heads, q_len, d_v).
    Tensor4<T> attend_by_heads() {
        if (kernels_.attention == nullptr) return attend(call_, recorder_);
        const auto& q = call_.query.shape();
        Tensor4<T> context = Tensor4<T>::from_shape({q[0], q[1], q[2], g_.d_v});
        attend_into(rows_of(context));
        recorder_.keep("head_outputs", context);
        return context;
    }

    /// (batch, q_len, heads * d_v).
    Tensor3<T> attend_and_join() {
        if (kernels_.attention == nullptr || recorder_.wants("head_outputs"))
            return join_heads(attend_by_heads());
        const auto& q = call_.query.shape();
        const std::size_t row = q[1] * g_.d_v;
        Tensor3<T> joined = Tensor3<T>::from_shape({q[0], q[2], row});
        attend_into({joined.data(), q[2] * row, g_.d_v, row});
        return joined;
    }

    void attend_into(const HeadRows<T>& context) {
        const auto& q = call_.query.shape();
        const std::array<std::size_t, 4> weights{q[0], q[1], q[2], g_.kv_len};
        const auto room = [&](ArrayId array) {
            return recorder_.template make_room<T>(array, weights);
        };
        FusedOutputs<T> outputs{context};
        Tensor4<T> averaged;
        const bool averages = settings_.average_heads && recorder_.wants("attention_weights");
        const bool streams = may_stream_ && streams_weights(settings_, g_);
        if (averages) {
            averaged = Tensor4<T>::from_shape(weights);
            outputs.weights = averaged.data();
        } else if (!streams) {
            outputs.weights = room("attention_weights");
        }
        if (!streams) outputs.scores = room("scores");
        outputs.logsumexp = recorder_.template make_room<T>("logsumexp", {q[0], q[1], q[2], 1});
        attend_fused(*kernels_.attention, call_, outputs, workers_);
        if (streams) stream();
        call_ = {};
        if (averaged.size() != 0) recorder_.keep("attention_weights", averaged);
    }

    void stream() {
        const auto call = std::make_shared<const AttentionCall<T>>(std::move(call_));
        const auto keep = [&](ArrayId array, bool scores) {
            if (recorder_.wants(array))
                recorder_.keep_stream(array,
                                      stream_weights(*kernels_.attention, call, scores, workers_));
        };
        keep("attention_weights", false);
        keep("scores", true);
    }

    void keep_token_ids() {
        if (operands_.token_ids.empty()) return;
        Array<std::int64_t> ids = Array<std::int64_t>::from_shape({operands_.token_ids.size()});
        std::copy(operands_.token_ids.begin(), operands_.token_ids.end(), ids.begin());
        recorder_.keep_as_is("token_ids", ids);
    }

    const Settings& settings_;
    Operands& operands_;  // each is taken when it is used
    ThreadPool& workers_;
    bool may_stream_;
    Geometry g_;
    ChosenKernels kernels_;
    TorchGenerator generator_;
    Recorder recorder_;
    AttentionCall<T> call_;
    std::shared_ptr<const LayerWeights<T>> weights_;  // null without projections
};

}  // namespace

Mask mask_of(const Settings& settings, const Operands& operands) {
    Operands masks;  // which are used up
    masks.mask = operands.mask;
    masks.key_padding_mask = operands.key_padding_mask;
    masks.mask_is_boolean = operands.mask_is_boolean;
    masks.key_padding_mask_is_boolean = operands.key_padding_mask_is_boolean;
    AttentionCall<double> call;
    add_rules(call, settings, masks, geometry_of(settings, operands));
    for (Broadcast& bias : call.biases) call.mask.add(BiasRule(std::move(bias)), "mask");
    return std::move(call.mask);
}

Result compute(const Settings& settings, Operands operands, ThreadPool& workers, bool may_stream) {
    if (settings.dtype == Dtype::float32)
        return Layer<float>(settings, operands, workers, may_stream).run();
    return Layer<double>(settings, operands, workers, may_stream).run();
}

}  // namespace attn
