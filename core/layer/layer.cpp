// Attention layers: projections, heads, operator, output projection. Every function follows the
// plan, so that a model can use one plan per block.
#include "core/layer/layer.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "core/base/torch_random.hpp"
#include "core/layer/heads.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/operator/attention.hpp"
#include "core/operator/recorder.hpp"
#include "core/operator/rope.hpp"
#include "core/plan/backend.hpp"

namespace attn {
namespace {

/// Independent heads keep a heads axis.
template <class T>
void keep_weights(const LayerWeights<T>& weights, Recorder& recorder) {
    const auto record = [&](ArrayId weight_id, ArrayId bias_id, const Projection<T>& p) {
        if (recorder.records(weight_id)) {
            std::vector<std::size_t> shape(p.weight.shape().begin(), p.weight.shape().end());
            if (recorder.axes_of(weight_id).size() < shape.size()) shape.erase(shape.begin());
            Array<T> weight(p.weight);
            weight.reshape(std::move(shape));
            recorder.keep_as_is(weight_id, std::move(weight), p.in_out);
        }
        if (p.has_bias() && recorder.records(bias_id)) {
            std::vector<std::size_t> shape(p.bias.shape().begin(), p.bias.shape().end());
            if (recorder.axes_of(bias_id).size() < shape.size()) shape.erase(shape.begin());
            Array<T> bias(p.bias);
            bias.reshape(std::move(shape));
            recorder.keep_as_is(bias_id, std::move(bias));
        }
    };
    record("W_query", "b_query", weights.query);
    record("W_key", "b_key", weights.key);
    record("W_value", "b_value", weights.value);
    if (weights.out) record("W_out", "b_out", *weights.out);
}

/// Where the weights' draws begin. Seeding takes time, so it is left out if nothing is drawn.
TorchGenerator generator_of(const Plan& plan) {
    static const TorchGenerator unused(0);
    const bool draws = plan.parameters.source == Parameters::Source::drawn || plan.dropout.p != 0;
    if (!draws || is_dry_run()) return unused;
    TorchGenerator generator(plan.parameters.seed.bits);
    generator.skip(plan.parameters.skip);
    return generator;
}

/// Dropout continues after the weights' draws, unless it has a separate generator. Independent
/// heads each have a separate dropout.
Dropout dropout_of(const Plan& plan, const TorchGenerator& weights_generator) {
    Dropout dropout{plan.dropout.p, plan.dropout.stream, plan.independent_heads(), plan.q_len};
    if (plan.dropout.p == 0 || is_dry_run()) return dropout;
    dropout.generator = weights_generator;
    if (plan.dropout.has_own_generator) {
        dropout.generator = TorchGenerator(plan.dropout.seed.bits);
        dropout.generator->skip(plan.dropout.skip);
    }
    return dropout;
}

/// The masks and score steps of the plan. Additive masks are rounded to T, so that elements below
/// T's range mask.
template <class T>
void add_rules(AttentionCall<T>& call, const Plan& plan, Operands& operands) {
    static_cast<ScoreSettings&>(call) = plan;
    call.scale = plan.scale;
    call.mask_method = plan.mask_method;
    call.first_query = plan.first_query;
    call.offset = plan.offset;
    call.sink = plan.sink;
    Masks masks = take_masks(plan, operands);
    for (Broadcast& bias : masks.biases) bias.template round_to<T>();
    call.mask = std::move(masks.rules);
    call.biases = std::move(masks.biases);
}

/// The state that the steps of a layer share.
template <class T>
struct Work {
    const Plan& plan;
    ThreadPool& pool;
    Recorder& recorder;
    TorchGenerator& generator;

    void project(const Tensor3<T>& x, std::span<const ProjectionTo<T>> to) const {
        plan.backend->entries<T>().project(plan, x, to, pool);
    }
};

template <class T>
HeadRows<T> rows_of(Tensor4<T>& x) {
    const std::size_t row = x.shape(3), head = x.shape(2) * row;
    return {x.data(), x.shape(1) * head, head, row};
}

/// Only the query rows that are computed.
template <class T>
Tensor4<T> query_rows(const Plan& plan, Tensor4<T> queries) {
    return plan.rows == plan.q_len ? std::move(queries) : row_of_heads(queries, plan.first_query);
}

/// (batch, tokens, d_in), after the norm if there is one.
template <class T>
Tensor3<T> tokens_of(const Work<T>& work, Operands& operands) {
    Tensor3<T> x = as_batch(operands.inputs.take<T>());
    work.recorder.record("inputs", x);
    if (!operands.norm) return x;
    const std::size_t size = is_dry_run() ? 0 : x.size();
    for (std::size_t at = 0; at < size; at += work.plan.d_in)
        normalise(*operands.norm, std::span<T>(x.data() + at, work.plan.d_in));
    work.recorder.record("normed_inputs", x);
    return x;
}

template <class T>
std::shared_ptr<const LayerWeights<T>> weights_of(const Work<T>& work, const Operands& operands) {
    const Plan& plan = work.plan;
    if (plan.parameters.source == Parameters::Source::none) return nullptr;
    if (operands.weights)
        return std::get<std::shared_ptr<const LayerWeights<T>>>(*operands.weights);
    const auto size = [&](Axis axis) {
        return static_cast<std::size_t>(plan.size_of<std::uint64_t>(axis));
    };
    const WeightSizes sizes{plan.d_in,
                            plan.d_context,
                            size(Axis::query_width),
                            size(Axis::key_width),
                            size(Axis::value_width),
                            size(Axis::joined),
                            plan.d_out,
                            size(Axis::groups)};
    return std::make_shared<const LayerWeights<T>>(
        draw_weights<T>(plan.parameters, sizes, work.generator));
}

/// Without projections each head takes its own columns of the input; each independent head is a
/// separate layer and takes all of them.
template <class T>
Tensor4<T> heads_of_tokens(const Plan& plan, const Tensor3<T>& x) {
    return plan.independent_heads() ? copy_for_heads(x, plan.heads) : split_heads(x, plan.heads);
}

/// Queries of x, keys and values of the source, which may be x. Null weights: no projections.
template <class T>
void make_heads(const Work<T>& work, const Tensor3<T>& x, const Tensor3<T>& source,
                const LayerWeights<T>* weights, AttentionCall<T>& call) {
    const Plan& plan = work.plan;
    if (weights == nullptr) {
        call.query = query_rows(plan, heads_of_tokens(plan, x));
        call.key = call.value = heads_of_tokens(plan, source);
        return;
    }
    const std::size_t heads = plan.heads, kv_heads = plan.kv_heads;
    const auto allocate = [](const Tensor3<T>& tokens, std::size_t count, std::size_t width) {
        return Tensor4<T>::from_shape({tokens.shape(0), count, tokens.shape(1), width});
    };
    call.query = allocate(x, heads, plan.d_k);
    call.key = allocate(source, kv_heads, plan.d_k);
    call.value = allocate(source, kv_heads, plan.d_v);
    const ProjectionTo<T> all[] = {{weights->query, heads, rows_of(call.query)},
                                   {weights->key, kv_heads, rows_of(call.key)},
                                   {weights->value, kv_heads, rows_of(call.value)}};
    const std::span<const ProjectionTo<T>> to(all);
    const std::size_t of_x = &x == &source ? 3 : 1;
    work.project(x, to.first(of_x));
    if (of_x == 1) work.project(source, to.last(2));
    call.query = query_rows(plan, std::move(call.query));
}

template <class T>
void prepend(const Plan& plan, Array<T> past, Tensor4<T>& fresh) {
    fresh = join_rows(unpack(std::move(past), plan, plan.kv_heads, false), fresh);
}

/// Everything of the call except the queries, keys and values, which are set.
template <class T>
void finish_call(const Work<T>& work, Operands& operands, AttentionCall<T>& call) {
    const Plan& plan = work.plan;
    Recorder& recorder = work.recorder;
    recorder.record("unrotated_queries", call.query);
    recorder.record("unrotated_keys", call.key);
    // New tokens follow the cached ones, whose keys were rotated when they were new.
    rotate(call.query, plan.rope, plan.past_len + plan.first_query);
    rotate(call.key, plan.rope, plan.past_len);
    recorder.record("queries", call.query);
    recorder.record("keys", call.key);
    recorder.record("values", call.value);
    if (plan.past_len != 0) {
        prepend(plan, operands.past_key.take<T>(), call.key);
        prepend(plan, operands.past_value.take<T>(), call.value);
    }
    recorder.record("present_key", call.key);
    recorder.record("present_value", call.value);
    add_rules(call, plan, operands);
    call.dropout = dropout_of(plan, work.generator);
}

/// (batch, heads, q_len, d_v). Consumes the call.
template <class T>
Tensor4<T> attend_apart(const Work<T>& work, AttentionCall<T>& call) {
    const Plan& plan = work.plan;
    Tensor4<T> context = Tensor4<T>::from_shape({plan.batch, plan.heads, plan.rows, plan.d_v});
    plan.backend->entries<T>().attend(plan, std::move(call), rows_of(context), work.recorder,
                                      work.pool);
    return context;
}

/// (batch, q_len, heads * d_v). Consumes the call.
template <class T>
Tensor3<T> attend_joined(const Work<T>& work, AttentionCall<T>& call) {
    const Plan& plan = work.plan;
    const std::size_t row = plan.heads * plan.d_v;
    Tensor3<T> joined = Tensor3<T>::from_shape({plan.batch, plan.rows, row});
    plan.backend->entries<T>().attend(plan, std::move(call),
                                      {joined.data(), plan.rows * row, plan.d_v, row},
                                      work.recorder, work.pool);
    return joined;
}

template <class T>
Tensor3<T> project_out(const Work<T>& work, const Tensor3<T>& joined,
                       const Projection<T>& projection) {
    Tensor3<T> context =
        Tensor3<T>::from_shape({joined.shape(0), joined.shape(1), projection.d_out()});
    const std::size_t row = context.shape(2);
    const ProjectionTo<T> to{projection, 1, {context.data(), context.shape(1) * row, 0, row}};
    work.project(joined, std::span(&to, 1));
    return context;
}

template <class T>
void run_operator(const Work<T>& work, Operands& operands) {
    const Plan& plan = work.plan;
    AttentionCall<T> call;
    call.query = query_rows(plan, unpack(operands.query.take<T>(), plan, plan.heads, plan.packed));
    call.key = unpack(operands.key.take<T>(), plan, plan.kv_heads, plan.packed);
    call.value = unpack(operands.value.take<T>(), plan, plan.kv_heads, plan.packed);
    finish_call(work, operands, call);
    if (plan.packed)
        work.recorder.record("context_vectors", attend_joined(work, call));
    else
        work.recorder.record("context_vectors", attend_apart(work, call));
}

/// From tokens to context vectors, (batch, q_len, d_out).
template <class T>
Tensor3<T> run_layer(const Work<T>& work, Operands& operands, const LayerWeights<T>* weights) {
    AttentionCall<T> call;
    {
        const Tensor3<T> x = tokens_of(work, operands);
        Tensor3<T> context;
        const bool has_context = row_of(work.plan.mode).context;
        if (has_context) context = as_batch(operands.context.take<T>());
        make_heads(work, x, has_context ? context : x, weights, call);
    }
    finish_call(work, operands, call);
    const Tensor3<T> joined = attend_joined(work, call);
    return weights != nullptr && weights->out ? project_out(work, joined, *weights->out) : joined;
}

void keep_token_ids(const Plan& plan, const Operands& operands, Recorder& recorder) {
    if (!recorder.records("token_ids")) return;
    Array<std::int64_t> ids = Array<std::int64_t>::from_shape({plan.q_len});
    std::copy(operands.token_ids.begin(), operands.token_ids.end(), ids.begin());
    recorder.keep_as_is("token_ids", std::move(ids));
}

template <class T>
Result compute_in(const Plan& plan, Operands& operands, ThreadPool& pool) {
    Recorder recorder(plan.emit, plan.shown);
    TorchGenerator generator = generator_of(plan);
    const Work<T> work{plan, pool, recorder, generator};
    if (!row_of(plan.mode).projects) {
        run_operator(work, operands);
        return {recorder.take(), std::nullopt};
    }
    keep_token_ids(plan, operands, recorder);
    const std::shared_ptr<const LayerWeights<T>> weights = weights_of(work, operands);
    if (weights != nullptr) keep_weights(*weights, recorder);
    recorder.record("context_vectors", run_layer(work, operands, weights.get()));
    Result result{recorder.take(), std::nullopt};
    if (weights != nullptr) result.weights = weights;
    return result;
}

}  // namespace

Mask mask_of(const Plan& plan, const Operands& operands) {
    Operands masks;  // which are consumed
    masks.mask = operands.mask;
    masks.key_padding_mask = operands.key_padding_mask;
    masks.mask_is_boolean = operands.mask_is_boolean;
    masks.key_padding_mask_is_boolean = operands.key_padding_mask_is_boolean;
    Masks all = take_masks(plan, masks);
    for (Broadcast& bias : all.biases) all.rules.add(BiasRule(std::move(bias)));
    return std::move(all.rules);
}

Result compute(const Plan& plan, Operands&& operands, ThreadPool& pool) {
    Operands used = std::move(operands);  // each tensor is freed after its last use
    return for_dtype(plan.dtype, [&]<class T>(T) { return compute_in<T>(plan, used, pool); });
}

}  // namespace attn
