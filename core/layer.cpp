// Attention layers: projections, heads, operator, output projection.
#include "core/layer.hpp"

#include <algorithm>
#include <utility>

#include <xtensor/xmanipulation.hpp>
#include <xtensor/xview.hpp>

#include "core/attention.hpp"
#include "core/dropout.hpp"
#include "core/recorder.hpp"
#include "core/torch_random.hpp"
#include "core/weights.hpp"

namespace attn {
namespace {

/// An array of any rank as (batch, rows, columns) in T.
template <class T>
Tensor3<T> as_batch(const Array<double>& values) {
    const std::size_t rank = values.dimension();
    Tensor3<T> batch = Tensor3<T>::from_shape(
        {rank == 3 ? values.shape(0) : 1, values.shape(rank - 2), values.shape(rank - 1)});
    std::transform(values.begin(), values.end(), batch.begin(),
                   [](double value) { return static_cast<T>(value); });
    return batch;
}

/// (batch, rows, heads * d) to (batch, heads, rows, d).
template <class T>
Tensor4<T> split_heads(const Tensor3<T>& x, std::size_t heads) {
    const Tensor4<T> split =
        xt::reshape_view(x, {x.shape(0), x.shape(1), heads, x.shape(2) / heads});
    return xt::transpose(split, {0, 2, 1, 3});
}

/// (batch, heads, rows, d) to (batch, rows, heads * d).
template <class T>
Tensor3<T> join_heads(const Tensor4<T>& x) {
    const Tensor4<T> rows_first = xt::transpose(x, {0, 2, 1, 3});
    return xt::reshape_view(rows_first, {x.shape(0), x.shape(2), x.shape(1) * x.shape(3)});
}

/// (batch, rows, columns) as (batch, 1, rows, columns).
template <class T>
Tensor4<T> one_head(const Tensor3<T>& x) {
    return split_heads(x, 1);
}

/// Only the query rows that were asked for.
template <class T>
Tensor3<T> query_rows(const Tensor3<T>& x, const Settings& settings) {
    if (!settings.token) return x;
    return xt::view(x, xt::all(), xt::range(*settings.token, *settings.token + 1), xt::all());
}

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
Tensor4<T> draw_dropout(const Settings& settings, std::size_t batch, std::size_t all_queries,
                        std::size_t kv_len, TorchGenerator& weights_generator) {
    TorchGenerator own(settings.dropout_seed.value_or(Seed{}).bits);
    if (settings.dropout_seed) own.skip(settings.dropout_skip);
    TorchGenerator& generator = settings.dropout_seed ? own : weights_generator;

    const std::size_t heads = settings.heads;
    DropoutExtent extent{batch,
                         heads,
                         all_queries,
                         kv_len,
                         settings.token.value_or(0),
                         settings.token ? 1 : all_queries};
    const auto draw = [&] {
        return dropout_mask<T>(settings.dropout, settings.dropout_stream, extent, generator);
    };
    if (settings.style != Style::wrapper) return draw();
    Tensor4<T> mask = Tensor4<T>::from_shape({batch, heads, extent.kept_rows, kv_len});
    extent.inner = 1;
    for (std::size_t head = 0; head < heads; ++head)
        xt::view(mask, xt::all(), xt::range(head, head + 1)) = draw();
    return mask;
}

template <class T>
class Layer {
public:
    Layer(const Settings& settings, const Operands& operands)
        : settings_(settings), operands_(operands), generator_(settings.seed.bits),
          recorder_(settings.emit, operands.inputs.dimension() == 3,
                    settings.mode == Mode::multihead) {
        generator_.skip(settings.rng_skip);
    }

    Result run() {
        settings_.mode == Mode::sdpa ? run_operator() : run_layer();
        return {settings_, shapes_, recorder_.take()};
    }

private:
    void run_operator() {
        call_.query = one_head(query_rows(as_batch<T>(operands_.query), settings_));
        call_.key = one_head(as_batch<T>(operands_.key));
        call_.value = one_head(as_batch<T>(operands_.value));
        const Tensor4<T> context = attend_heads(operands_.query.shape(0));
        recorder_.keep("context_vectors", context, "q_len", "d_v");
        shapes_.d_in = shapes_.d_k;
        shapes_.d_out = shapes_.d_v;
    }

    void run_layer() {
        const Tensor3<T> x = as_batch<T>(operands_.inputs);
        keep_inputs(x);
        std::optional<Projection<T>> output;
        if (settings_.init == Init::none) {
            call_.query = heads_of_inputs(query_rows(x, settings_));
            call_.key = call_.value = heads_of_inputs(x);
        } else {
            LayerWeights<T> weights = draw_weights<T>(settings_, weight_sizes(x), generator_);
            keep_weights(weights, settings_, recorder_);
            call_.query =
                split_heads(project(query_rows(x, settings_), weights.query), settings_.heads);
            call_.key = split_heads(project(x, weights.key), settings_.heads);
            call_.value = split_heads(project(x, weights.value), settings_.heads);
            output = std::move(weights.out);
        }
        const Tensor3<T> joined = join_heads(attend_heads(x.shape(1)));
        const Tensor3<T> context = output ? project(joined, *output) : joined;
        keep_context(context);
        shapes_.d_out = context.shape(2);
        shapes_.d_in = x.shape(2);
    }

    WeightSizes weight_sizes(const Tensor3<T>& x) const {
        return {x.shape(2), *settings_.d_k, *settings_.d_v, *settings_.d_out,
                settings_.style == Style::wrapper ? settings_.heads : 1};
    }

    /// Without projections each head of the split style takes its own columns of the input; each
    /// head of the wrapper style is a layer by itself and takes all of them.
    Tensor4<T> heads_of_inputs(const Tensor3<T>& x) const {
        if (settings_.style == Style::split) return split_heads(x, settings_.heads);
        Tensor4<T> copies =
            Tensor4<T>::from_shape({x.shape(0), settings_.heads, x.shape(1), x.shape(2)});
        for (std::size_t head = 0; head < settings_.heads; ++head)
            xt::view(copies, xt::all(), head) = x;
        return copies;
    }

    Tensor4<T> attend_heads(std::size_t all_queries) {
        const std::size_t batch = call_.query.shape(0);
        const std::size_t kv_len = call_.key.shape(2);
        recorder_.keep("queries", call_.query, "q_len", "d_k");
        recorder_.keep("keys", call_.key, "kv_len", "d_k");
        recorder_.keep("values", call_.value, "kv_len", "d_v");
        call_.scale = *settings_.scale;
        call_.mask = *settings_.causal ? Mask::causal() : Mask::none();
        call_.mask_method = settings_.mask_method;
        call_.first_query = settings_.token.value_or(0);
        call_.dropout = draw_dropout<T>(settings_, batch, all_queries, kv_len, generator_);
        shapes_ = {batch,
                   settings_.heads,
                   settings_.heads,
                   call_.query.shape(2),
                   kv_len,
                   0,
                   call_.key.shape(3),
                   call_.value.shape(3),
                   0};
        return attend(call_, recorder_);
    }

    void keep_inputs(const Tensor3<T>& x) {
        if (!operands_.token_ids.empty()) {
            Array<std::int64_t> ids = Array<std::int64_t>::from_shape({operands_.token_ids.size()});
            std::copy(operands_.token_ids.begin(), operands_.token_ids.end(), ids.begin());
            recorder_.keep_as_is("token_ids", ids, {"tokens"});
        }
        keep_without_heads("inputs", x, "tokens", "d_in");
    }

    void keep_context(const Tensor3<T>& context) {
        keep_without_heads("context_vectors", context, "q_len", "d_out");
    }

    void keep_without_heads(std::string_view name, const Tensor3<T>& values, std::string_view rows,
                            std::string_view columns) {
        Array<T> shown = values;
        std::vector<std::string_view> axes{"batch", rows, columns};
        if (operands_.inputs.dimension() == 2) {
            shown.reshape({values.shape(1), values.shape(2)});
            axes.erase(axes.begin());
        }
        recorder_.keep_as_is(name, std::move(shown), std::move(axes));
    }

    const Settings& settings_;
    const Operands& operands_;
    TorchGenerator generator_;
    Recorder recorder_;
    AttentionCall<T> call_;
    Shapes shapes_{};
};

}  // namespace

Result compute(const Settings& settings, const Operands& operands) {
    return settings.dtype == Dtype::float32 ? Layer<float>(settings, operands).run()
                                            : Layer<double>(settings, operands).run();
}

}  // namespace attn
