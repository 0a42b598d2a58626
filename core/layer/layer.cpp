// A layer: its stages in order, its parameters, its masks and draws. Every function follows the
// plan, so that a model can use one plan per block.
#include "core/layer/layer.hpp"

#include "core/layer/backward.hpp"
#include "core/layer/embedding.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/layer/stages.hpp"
#include "core/operator/cuda_dropout.hpp"
#include "core/plan/backend.hpp"

namespace attn {
namespace {

/// Independent heads keep a heads axis.
template <class T>
void keep_weights(const LayerWeights<T>& weights, Recorder& recorder) {
    const auto keep = [&](ArrayId array, const auto& values, bool is_transposed) {
        if (!recorder.records(array)) return;
        std::vector<std::size_t> shape(values.shape().begin(), values.shape().end());
        if (recorder.axes_of(array).size() < shape.size()) shape.erase(shape.begin());
        Array<T> copy(values);
        copy.reshape(std::move(shape));
        recorder.keep_as_is(array, std::move(copy), is_transposed);
    };
    const auto record = [&](ArrayId weight, ArrayId bias, const Projection<T>& p) {
        keep(weight, p.weight, p.in_out);
        if (p.has_bias()) keep(bias, p.bias, false);
    };
    record("W_query", "b_query", weights.query);
    record("W_key", "b_key", weights.key);
    record("W_value", "b_value", weights.value);
    if (weights.out) record("W_out", "b_out", *weights.out);
}

/// The stream of the seed where the weights' draws begin, of a question that draws from it.
std::optional<RandomStream> stream_after_inputs(const Plan& plan,
                                                const RandomStream* after_inputs = nullptr) {
    const Settings& s = plan.config;
    const bool draws_more = plan.draws_parameters() || (s.dropout != 0 && s.continues_stream());
    if (!draws_more && s.drawn_shape().empty()) return {};
    if (after_inputs != nullptr) return *after_inputs;
    std::optional<RandomStream> stream(std::in_place, s);
    draw_inputs(s, *stream);
    return stream;
}

/// Dropout continues after the draws of inputs and weights, unless it has a separate generator.
/// Independent heads each have a separate dropout.
Dropout dropout_of(const Plan& plan, const std::optional<RandomStream>& of_weights, bool draws) {
    const Settings& s = plan.config;
    Dropout dropout{s.dropout, s.dropout_stream, plan.independent_heads(), plan.q_len};
    dropout.kernel = s.dropout_kernel;
    dropout.element_size = row_of(s.dtype).size;
    if (s.dropout == 0 || !draws) return dropout;
    const std::uint64_t seed = s.dropout_seed.value_or(s.seed).bits,
                        skipped = s.dropout_skip.value_or(0);
    if (s.dropout_stream == DropoutStream::cuda) {
        dropout.cuda = s.continues_stream() ? of_weights->generator<CudaGenerator>()
                                            : CudaGenerator(seed, s.gpu(), skipped);
    } else if (s.continues_stream()) {
        dropout.generator = of_weights->generator<TorchGenerator>();
    } else {
        dropout.generator = TorchGenerator(seed);
        dropout.generator->skip(skipped);
    }
    return dropout;
}

/// The draws of the seed's stream up to the end of the question, from the stream after the weights.
std::uint64_t draws_in_all(const Plan& plan, const std::optional<RandomStream>& of_weights) {
    if (!of_weights) return 0;
    if (plan.config.dropout == 0 || !plan.config.continues_stream()) return of_weights->position();
    return end_of_dropout(plan, dropout_of(plan, of_weights, true));
}

/// The masks and score steps of the plan. Additive masks are rounded to the dtype, so that elements
/// below its range mask.
template <class T>
void add_rules(AttentionCall<T>& call, const Plan& plan, Operands& operands) {
    static_cast<ScoreSettings&>(call) = plan.config;
    call.scale = *plan.config.scale;
    call.mask_method = plan.config.mask_method;
    call.first_query = plan.first_query;
    call.offset = plan.offset;
    call.sizes = plan.expression_sizes();
    call.prob_mod = plan.config.prob_mod;
    call.top_k = static_cast<std::size_t>(plan.config.top_k.value_or(0));
    call.sink = plan.config.sinks();
    call.top = plan.top;
    call.type = plan.config.dtype;
    call.softmax_type = plan.config.softmax_type();
    call.sum_type = plan.config.sum_type();
    round_all(std::span(call.sink), call.type);
    Masks masks = take_masks(plan, operands);
    for (Broadcast& bias : masks.biases) bias.round_to(call.type);
    call.mask = std::move(masks.rules);
    call.biases = std::move(masks.biases);
}

/// Given parameters in the dtype.
template <class T>
std::shared_ptr<const LayerWeights<T>> rounded_weights(
    const Plan& plan, std::shared_ptr<const LayerWeights<T>> given) {
    const NumberType dtype = plan.config.dtype;
    if (!is_rounded(dtype)) return given;
    LayerWeights<T> weights = with_numbers(*given, [&](T x) { return rounded(x, dtype); });
    for (std::optional<InputNorm>* const norm : {&weights.query_norm, &weights.key_norm})
        if (*norm) round_norm(**norm, dtype);
    return std::make_shared<const LayerWeights<T>>(std::move(weights));
}

template <class T>
std::shared_ptr<const LayerWeights<T>> weights_of(const Plan& plan, const Operands& operands,
                                                  std::optional<RandomStream>& stream) {
    if (!plan.has_parameters()) return nullptr;
    if (!plan.draws_parameters())
        return rounded_weights(plan,
                               std::get<std::shared_ptr<const LayerWeights<T>>>(*operands.weights));
    auto weights = allocated_weights<T>(plan.weight_shapes());
    if (!stream) return std::make_shared<const LayerWeights<T>>(std::move(weights));
    draw_weights(plan.config, *stream, weights);
    return quantised(std::make_shared<const LayerWeights<T>>(std::move(weights)),
                     plan.config.quantised_type);
}

void keep_token_ids(const Plan& plan, const Operands& operands, Recorder& recorder) {
    if (!recorder.records("token_ids")) return;
    Array<std::int64_t> ids = Array<std::int64_t>::from_shape({plan.q_len});
    std::ranges::copy(operands.token_ids, ids.begin());
    recorder.keep_as_is("token_ids", std::move(ids));
}

/// Except masks, which add_rules() rounds.
template <class T>
void round_operands(Operands& operands, NumberType dtype) {
    if (!is_rounded(dtype)) return;
    for (const OperandRow& row : operand_rows) {
        if (row.is_mask() || operands[row].dimension() == 0) continue;
        Array<T> numbers = operands[row].take<T>();
        round_all(std::span(numbers.begin(), numbers.end()), dtype);
        operands[row] = std::move(numbers);
    }
    if (operands.norm) round_norm(*operands.norm, dtype);
}

/// The operands as they are given, from which the question can be asked again.
template <class T>
void keep_operands(const Plan& plan, const Operands& operands, Recorder& recorder) {
    for (const OperandRow& row : operand_rows) {
        const std::optional<ArrayId> array = find_array(row.array);
        if (!array || !array->row().is_operand() || !recorder.records(*array)) continue;
        RealArray copy = operands[row];
        const std::vector<std::string_view> axes = plan.computed_axes_of(*array);
        if (row.is_mask()) {
            recorder.keep_as_is(*array, copy.take<double>(), axes);
            continue;
        }
        recorder.keep_as_is(*array, copy.take<T>(), axes);
    }
}

/// Queries, keys and values of the tokens, which are freed. A context may have the used rows alone.
template <class T>
AttentionCall<T> project_tokens(const Stages<T>& stages, Operands& operands,
                                const LayerWeights<T>* weights) {
    Tensor3<T> x = as_batch(operands["inputs"].take<T>());
    stages.recorder.record("inputs", x);
    x = stages.norm(operands.norm, std::move(x));
    const KeyRange used = stages.plan.new_keys();
    const std::size_t count = used.end - used.first;
    const auto used_of = [&](const Tensor3<T>& source) {
        return sliced(source, 1, used.first, count);
    };
    if (!row_of(stages.plan.config.mode).context)
        return count == x.shape(1) ? stages.project(weights, x, x)
                                   : stages.project(weights, x, used_of(x));
    const auto take = [&](OperandId operand) {
        Tensor3<T> source = as_batch(operands[operand].take<T>());
        if (count != source.shape(1)) source = used_of(source);
        return source;
    };
    const Tensor3<T> source = take("context");
    if (operands["value_input"].dimension() == 0) return stages.project(weights, x, source);
    const Tensor3<T> of_values = take("value_input");
    return stages.project(weights, x, source, &of_values);
}

/// The call of the plan's queries and keys, from operands that are freed after their last use.
/// Consumes the call of `parts`.
template <class T>
AttentionCall<T> make_call(const Stages<T>& stages, Operands& operands, LayerParts<T>& parts) {
    const Plan& plan = stages.plan;
    const LayerWeights<T>* const weights = parts.weights.get();
    AttentionCall<T> call =
        plan.projects ? project_tokens(stages, operands, weights) : stages.split(operands);
    stages.rotate_and_append(call, operands);
    if (plan.config.rule) call.recurrence = stages.recurrence(operands);
    AttentionCall<T> whole = std::move(parts.call);
    whole.query = std::move(call.query);
    whole.key = std::move(call.key);
    whole.value = std::move(call.value);
    whole.recurrence = std::move(call.recurrence);
    if (plan.keys != plan.kv_len) number_keys_from(whole, plan.first_key, plan.kv_len);
    return whole;
}

template <class T>
LayerParts<T> take_parts(const Plan& plan, Operands& operands) {
    LayerParts<T> parts;
    const bool draws = !is_dry_run();
    std::optional<RandomStream> stream;
    if (draws) stream = stream_after_inputs(plan, operands.after_inputs.get());
    parts.weights = weights_of<T>(plan, operands, stream);
    parts.draws = draws_in_all(plan, stream);
    add_rules(parts.call, plan, operands);
    parts.call.dropout = dropout_of(plan, stream, draws);
    return parts;
}

/// The matrix (d_out, d_in) of one projection, however it is stored.
template <class T>
Array<T> out_in(const Projection<T>& p) {
    Array<T> copy = Array<T>::from_shape({p.d_out(), p.d_in()});
    for_each_index(p.d_out(), [&](std::size_t o) {
        for (std::size_t i = 0; i < p.d_in(); ++i) copy(o, i) = p.at(0, o, i);
    });
    return copy;
}

}  // namespace

KeyPart compute_part(const Plan& plan, Operands&& operands, ThreadPool& pool) {
    Operands used = std::move(operands);
    return for_dtype(plan.config.dtype, [&]<class T>(T) {
        Recorder nothing({}, plan.shown);
        const Stages<T> stages{plan, pool, nothing};
        LayerParts<T> parts = take_parts<T>(plan, used);
        const std::shared_ptr<const LayerWeights<T>>& weights = parts.weights;
        AttentionCall<T> call = make_call(stages, used, parts);
        call.sink.clear();  // counts once for all parts
        const std::array shape{plan.batch, plan.heads, plan.rows, plan.d_v};
        Array<T> context = Array<T>::from_shape({shape.begin(), shape.end()});
        KeyPart part;
        part.logsumexp = Array<double>::from_shape({plan.batch, plan.heads, plan.rows});
        attend_part(*plan.backend, call, rows_of_heads(context.data(), shape),
                    part.logsumexp.data(), pool);
        part.context = std::move(context);
        if (weights != nullptr && weights->out) {
            part.out_weight = out_in(*weights->out);
            const Tensor2<T>& bias = weights->out->bias;
            if (weights->out->has_bias()) {
                Array<T> copy(bias);
                copy.reshape({bias.size()});
                part.out_bias = std::move(copy);
            }
        }
        return part;
    });
}

Result result_of_rows(const Plan& plan, KeyPart part, ThreadPool& pool) {
    return for_dtype(plan.config.dtype, [&]<class T>(T) -> Result {
        Recorder recorder(plan.emit, plan.shown);
        const Stages<T> stages{plan, pool, recorder};
        const std::array shape{plan.batch, plan.heads, plan.rows, plan.d_v};
        if (recorder.records("logsumexp"))
            recorder.record("logsumexp", Tensor4<T>{Array<T>(std::move(part.logsumexp)),
                                                    {shape[0], shape[1], shape[2], 1}});
        Tensor4<T> heads{part.context.take<T>(), shape};
        recorder.record("head_outputs", heads);
        const std::uint64_t draws = draws_of(plan).end;
        if (!recorder.records("context_vectors")) return {recorder.take(), std::nullopt, draws};
        if (!plan.shown.separate_heads) heads = merge_heads(heads);
        if (*plan.config.out_proj) {
            Array<T> weight = part.out_weight.take<T>(), bias = part.out_bias.take<T>();
            Projection<T> out;
            const std::size_t d_out = weight.shape(0), d_in = weight.shape(1);
            out.weight = {std::move(weight), {1, d_out, d_in}};
            if (bias.size() != 0) out.bias = {std::move(bias), {1, d_out}};
            heads = stages.project_out(out, std::move(heads));
        }
        recorder.record("context_vectors", heads);
        return {recorder.take(), std::nullopt, draws};
    });
}

Draws draws_of(const Plan& plan) {
    std::optional<RandomStream> stream = stream_after_inputs(plan);
    if (plan.draws_parameters())
        for_dtype(plan.config.dtype, [&]<class T>(T) { weights_of<T>(plan, {}, stream); });
    return {stream ? stream->drawn : std::vector<DrawnArray>{}, dropout_of(plan, stream, true),
            draws_in_all(plan, stream)};
}

std::uint64_t end_of_dropout(const Plan& plan, const Dropout& d) {
    const std::uint64_t begin = d.cuda ? d.cuda->offset() : d.generator->engine().position();
    if (d.p == 1) return begin;
    if (d.cuda) return CudaDropout(d, plan.batch, plan.heads, plan.kv_len).end_offset();
    if (d.stream == DropoutStream::mkl) return begin + (d.head_by_head ? plan.heads : 1);
    return begin + std::uint64_t{2} * plan.batch * plan.heads * plan.q_len * plan.kv_len;
}

Mask mask_of(const Plan& plan, const Operands& operands) {
    Operands masks;  // which are consumed
    for (const OperandRow* const mask : mask_operands) masks[*mask] = operands[*mask];
    Masks all = take_masks(plan, masks);
    for (Broadcast& bias : all.biases) all.rules.add(BroadcastRule(std::move(bias)));
    return std::move(all.rules);
}

AnyLayerParts take_parts(const Plan& plan, Operands& operands) {
    return for_dtype(plan.config.dtype,
                     [&]<class T>(T) -> AnyLayerParts { return take_parts<T>(plan, operands); });
}

Result compute(const Plan& plan, Operands&& operands, ThreadPool& pool) {
    Operands used = std::move(operands);  // each tensor is freed after its last use
    return for_dtype(plan.config.dtype, [&]<class T>(T) -> Result {
        Recorder recorder(plan.emit, plan.shown, plan.config.dtype);
        const Stages<T> stages{plan, pool, recorder};

        round_operands<T>(used, plan.config.dtype);
        keep_token_ids(plan, used, recorder);
        keep_operands<T>(plan, used, recorder);
        LayerParts<T> parts = take_parts<T>(plan, used);
        const std::shared_ptr<const LayerWeights<T>>& weights = parts.weights;
        if (weights != nullptr) keep_weights(*weights, recorder);
        const bool backward = plan.config.backward;
        KeptForBackward<T> kept;
        if (backward) kept.operands = used;
        AttentionCall<T> call = make_call(stages, used, parts);
        if (backward) kept.call = call;
        Tensor4<T> context = stages.attend(std::move(call));
        if (recorder.records("context_vectors") || backward) {
            if (weights != nullptr && weights->out) {
                if (backward) kept.heads = context;
                context = stages.project_out(*weights->out, std::move(context));
            }
            recorder.record("context_vectors", context);
        }
        if (backward) differentiate(stages, std::move(kept), weights.get(), context);
        std::vector<NamedArray> arrays = recorder.take();
        return {std::move(arrays),
                weights == nullptr ? std::nullopt : std::optional<AnyLayerWeights>(weights),
                parts.draws, recorder.overflows()};
    });
}

}  // namespace attn
