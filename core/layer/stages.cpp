#include "core/layer/stages.hpp"

#include "core/base/torch_math.hpp"
#include "core/operator/rope.hpp"
#include "core/plan/backend.hpp"

namespace attn {
namespace {

/// Only these rows of keys or values.
template <class T>
Tensor4<T> used_rows(const KeyRange& used, Tensor4<T> rows) {
    if (used.end - used.first == rows.shape(2)) return rows;
    return sliced(rows, 2, used.first, used.end - used.first);
}

/// Only the query rows that are computed. A rank of MPI gives its own rows and a plan of all of
/// them.
template <class T>
Tensor4<T> used_queries(const Plan& plan, Tensor4<T> rows) {
    return plan.rows == plan.q_len ? rows : sliced(rows, 2, plan.first_query, plan.rows);
}

template <class T>
Tensor4<T> heads_of_tokens(const Plan& plan, const Tensor3<T>& x) {
    return plan.independent_heads() ? copy_for_heads(x, plan.heads) : split_heads(x, plan.heads);
}

/// Applies the norm, if there is one, to each head of each token, or to all its heads together.
template <class T>
void normalise_heads(const std::optional<InputNorm>& norm, Tensor4<T>& heads) {
    if (!norm) return;
    for_each_normed_row(*norm, heads,
                        [&](std::span<T> row, const auto&) { normalise(*norm, row); });
}

}  // namespace

template <class T>
void Stages<T>::project_rows(const Tensor3<T>& x, std::span<const ProjectionTo<T>> to) const {
    if (x.shape(1) != 0) attn::project<T>(plan, x, to, pool);
}

template <class T>
Tensor3<T> Stages<T>::norm(const std::optional<InputNorm>& norm, Tensor3<T> x) const {
    if (!norm) return x;
    const std::size_t row = x.shape(2);
    for_each_index(x.shape(0) * x.shape(1),
                   [&](std::size_t i) { normalise(*norm, std::span<T>(x.data() + i * row, row)); });
    recorder.record("normed_inputs", x);
    return x;
}

template <class T>
AttentionCall<T> Stages<T>::project(const LayerWeights<T>* weights, const Tensor3<T>& x,
                                    const Tensor3<T>& source,
                                    const Tensor3<T>* value_source) const {
    AttentionCall<T> call;
    if (weights == nullptr) {
        call.query = used_queries(plan, heads_of_tokens(plan, x));
        call.key = call.value = heads_of_tokens(plan, source);
        if (value_source != nullptr) call.value = heads_of_tokens(plan, *value_source);
        return call;
    }
    const std::size_t heads = plan.heads, kv_heads = plan.kv_heads;
    const auto allocate = [](const Tensor3<T>& tokens, std::size_t count, std::size_t width) {
        return Tensor4<T>::from_shape({tokens.shape(0), count, tokens.shape(1), width});
    };
    call.query = allocate(x, heads, plan.d_k);
    call.key = allocate(source, kv_heads, plan.d_k);
    call.value = allocate(source, kv_heads, plan.d_v);
    const ProjectionTo<T> all[] = {
        {weights->query, heads, rows_of_heads(call.query.data(), call.query.shape())},
        {weights->key, kv_heads, rows_of_heads(call.key.data(), call.key.shape())},
        {weights->value, kv_heads, rows_of_heads(call.value.data(), call.value.shape())}};
    const std::span<const ProjectionTo<T>> to(all);
    const std::size_t of_x = &x == &source ? 3 : 1;
    project_rows(x, to.first(of_x));
    const std::size_t of_source = value_source == nullptr ? 3 - of_x : 1;
    if (of_x == 1) project_rows(source, to.subspan(1, of_source));
    if (value_source != nullptr) project_rows(*value_source, to.last(1));
    recorder.finish("queries", call.query);
    recorder.finish("keys", call.key);
    recorder.finish("values", call.value);
    call.query = used_queries(plan, std::move(call.query));
    normalise_heads(weights->query_norm, call.query);
    normalise_heads(weights->key_norm, call.key);
    return call;
}

template <class T>
AttentionCall<T> Stages<T>::split(Operands& operands) const {
    const auto heads_of = [&](OperandId operand, std::size_t heads) {
        return unpack(operands[operand].take<T>(), plan, heads, plan.packed);
    };
    AttentionCall<T> call;
    call.query = used_queries(plan, heads_of("query", plan.heads));
    const KeyRange used = plan.new_keys();
    call.key = used_rows(used, heads_of("key", plan.kv_heads));
    call.value = used_rows(used, heads_of("value", plan.kv_heads));
    return call;
}

template <class T>
Recurrence<T> Stages<T>::recurrence(Operands& operands) const {
    Recurrence<T> gates;
    gates.decay = gate_of_heads(plan, operands["decay"].take<T>(), plan.config.decay);
    const std::span decay(gates.decay.begin(), gates.decay.end());
    if (!plan.has_plain_decay()) exponentials(decay.data(), decay.size(), T{0}, decay.data());
    const std::vector<double> bonus = plan.bonus();
    gates.bonus.assign(bonus.begin(), bonus.end());
    gates.beta = gate_of_heads(plan, operands["beta"].take<T>(), plan.config.beta);
    if (RealArray& past = operands["past_state"]; past.dimension() != 0)
        gates.past_state = {past.take<T>(), {plan.batch, plan.kv_heads, plan.d_k, plan.d_v}};
    return gates;
}

template <class T>
void Stages<T>::rotate_and_append(AttentionCall<T>& call, Operands& operands) const {
    for (Tensor4<T>* x : {&call.query, &call.key})
        if (plan.config.qk_norm)
            to_unit_length(x->data(), x->size() / x->shape(3), x->shape(3),
                           plan.config.rule.has_value());
    recorder.record("unrotated_queries", call.query);
    recorder.record("unrotated_keys", call.key);
    if (plan.rope.dims != 0)
        for_each_index(2, [&](std::size_t i) {
            rotate(i == 0 ? call.query : call.key, plan.rope.pairs, plan.rope.angles(),
                   i == 0 ? plan.query_positions : plan.key_positions,
                   plan.past_len + (i == 0 ? plan.first_query : plan.new_keys().first),
                   plan.config.dtype);
        });
    recorder.record("queries", call.query);
    recorder.record("keys", call.key);
    recorder.record("values", call.value);
    const KeyRange used = plan.past_keys();
    const auto prepend = [&](OperandId past, Tensor4<T>& fresh) {
        if (used.end == used.first) return;
        fresh =
            joined(2, used_rows(used, unpack(operands[past].take<T>(), plan, plan.kv_heads, false)),
                   fresh);
    };
    prepend("past_key", call.key);
    prepend("past_value", call.value);
    recorder.record("present_key", call.key);
    recorder.record("present_value", call.value);
}

template <class T>
Tensor4<T> Stages<T>::attend(AttentionCall<T>&& call) const {
    if (!plan.needs_context()) {
        attn::attend(plan, std::move(call), {}, recorder, pool);
        return {};
    }
    const bool separate = plan.shown.separate_heads;
    const std::size_t row = plan.heads * plan.d_v;
    Tensor4<T> context =
        Tensor4<T>::from_shape(separate ? std::array{plan.batch, plan.heads, plan.rows, plan.d_v}
                                        : std::array{plan.batch, std::size_t{1}, plan.rows, row});
    HeadRows<T> rows = rows_of_heads(context.data(), context.shape());
    if (!separate) rows.head = plan.d_v;
    attn::attend(plan, std::move(call), rows, recorder, pool);
    recorder.finish("head_outputs", context);
    return context;
}

template <class T>
Tensor4<T> Stages<T>::project_out(const Projection<T>& projection, Tensor4<T> heads) const {
    const std::array shape{heads.shape(0), heads.shape(2), heads.shape(3)};
    const Tensor3<T> x(std::move(heads), shape);
    Tensor4<T> out = Tensor4<T>::from_shape({x.shape(0), 1, x.shape(1), projection.d_out()});
    // PyTorch adds the bias in the same sum, unless the joined heads are a view in which tokens are
    // neighbours: then it rounds the product first.
    const bool is_view = plan.heads > 1 && plan.d_v == 1 && plan.rows > 1;
    if (!is_rounded(plan.config.dtype) || !projection.has_bias() || !is_view) {
        const ProjectionTo<T> to{projection, 1, rows_of_heads(out.data(), out.shape())};
        project_rows(x, std::span(&to, 1));
        return out;
    }
    const Projection<T> product{projection.weight, {}, projection.in_out};
    const ProjectionTo<T> to{product, 1, rows_of_heads(out.data(), out.shape())};
    project_rows(x, std::span(&to, 1));
    recorder.finish("context_vectors", out);
    const std::size_t d_out = projection.d_out();
    for_each_index(out.size(),
                   [&](std::size_t i) { out.data()[i] += projection.bias(0, i % d_out); });
    return out;
}

template struct Stages<float>;
template struct Stages<double>;

}  // namespace attn
