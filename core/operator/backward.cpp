// The reference for every faster path, as reference.cpp is for the forward pass.
#include "core/operator/backward.hpp"

#include "core/expression/derivative.hpp"
#include "core/operator/products.hpp"

namespace attn {
namespace {

/// The arrays of the forward pass that the backward pass requires.
template <class T>
class ForwardArrays {
public:
    explicit ForwardArrays(const AttentionCall<T>& call) {
        ArraySet wanted{"scores",     "mask",     "softmax_weights",     "dropout_mask",
                        "exp_scores", "exp_sink", "softmax_denominator", "attention_weights"};
        for (const ScoreStep& step : score_steps())
            for (const ArrayId scores : step.emits) wanted.add(scores);
        Recorder recorder(wanted, {}, call.type);
        attend(call, recorder);
        arrays_ = recorder.take();
    }

    /// (batch, heads, q_len, kv_len or 1).
    Tensor4<T> take(ArrayId id) {
        const auto found = std::ranges::find(arrays_, id.row().name, &NamedArray::name);
        Array<T> values = std::get<Array<T>>(std::move(found->values));
        const Shape& shape = values.shape();
        const std::array full{shape[0], shape[1], shape[2], shape.size() < 4 ? 1 : shape[3]};
        return {std::move(values), full};
    }

private:
    using Shape = std::vector<std::size_t>;
    std::vector<NamedArray> arrays_;
};

/// sums[k] += weight of key k times the row, summed over the heads that share the key head. Masked
/// keys are skipped, so that NaN and infinities of a row do not reach them.
template <class T>
Tensor4<T> sums_over_queries(const Tensor4<T>& weights, const Tensor4<T>& mask,
                             const Tensor4<T>& rows, std::size_t key_heads, NumberType sum_type) {
    const std::size_t heads = weights.shape(1), queries = weights.shape(2), keys = weights.shape(3),
                      width = rows.shape(3), group = heads / key_heads;
    Tensor4<T> sums = Tensor4<T>::from_shape({weights.shape(0), key_heads, keys, width});
    sums.fill(T{0});
    for_each_index(weights.shape(0) * heads * queries, [&](std::size_t row) {
        T* const to = sums.data() + row / queries / group * keys * width;
        const T* const from = rows.data() + row * width;
        for (std::size_t k = 0; k < keys; ++k) {
            if (mask.data()[row * keys + k] == T{0}) continue;
            const T weight = weights.data()[row * keys + k];
            const std::span sum(to + k * width, width);
            for (std::size_t j = 0; j < width; ++j) sum[j] += weight * from[j];
            if (is_rounded(sum_type)) round_all(sum, sum_type);
        }
    });
    return sums;
}

/// Multiplies by the derivative of a step at its input. Masked keys keep 0.
template <class T>
void step_back(const StepUse& use, const AttentionCall<T>& call, const ScoreSettings& slopes,
               const Tensor4<T>& input, const Tensor4<T>& mask, Tensor4<T>& gradients) {
    const StepBack<T> back = std::get<StepBack<T>>(use.step.back);
    const std::size_t keys = input.shape(3);
    for_each_index(input.size() / keys, [&](std::size_t row) {
        const std::span all(gradients.data() + row * keys, keys);
        back(all, std::span(input.data() + row * keys, keys),
             score_row(call, slopes, input.shape(), row), use.index);
        for (std::size_t k = 0; k < keys; ++k)
            if (mask.data()[row * keys + k] == T{0}) all[k] = T{0};
    });
}

template <class T>
Array<double> bias_gradient(const Broadcast& bias, const AttentionCall<T>& call,
                            const Tensor4<T>& gradients) {
    Array<double> sums = Array<double>::from_shape(bias.values().shape());
    sums.fill(0);
    const std::size_t heads = gradients.shape(1), rows = gradients.shape(2),
                      keys = gradients.shape(3);
    for_each_index(gradients.size() / keys, [&](std::size_t row) {
        double* const to = sums.data() + bias.row(row / rows / heads, row / rows % heads,
                                                  call.first_query + row % rows);
        for (std::size_t k = 0; k < keys; ++k)
            if (bias.has_key(k))
                to[k * bias.key_step()] += double{gradients.data()[row * keys + k]};
    });
    return sums;
}

/// Multiplies by the derivative of prob_mod at the softmax weights.
template <class T>
void prob_mod_back(const AttentionCall<T>& call, const Tensor4<T>& weights, Tensor4<T>& gradients) {
    const Expression slope = derivative(call.prob_mod);
    const std::size_t keys = weights.shape(3);
    std::vector<T> slopes(keys);
    for_each_index(weights.size() / keys, [&](std::size_t row) {
        const ScoreRow at = score_row(call, call, weights.shape(), row);
        std::copy_n(weights.data() + row * keys, keys, slopes.data());
        compute_row(slope, call.sizes, {at.batch, at.head, at.query}, call.first_key,
                    std::span(slopes));
        for (std::size_t k = 0; k < keys; ++k) gradients.data()[row * keys + k] *= slopes[k];
    });
}

}  // namespace

template <class T>
AttentionGradients<T> attend_backward(const AttentionCall<T>& call, const Tensor4<T>& grad_context,
                                      Recorder& recorder) {
    ForwardArrays<T> forward(call);
    const Tensor4<T> mask = forward.take("mask"), weights = forward.take("softmax_weights");
    const std::size_t heads = weights.shape(1), keys = weights.shape(3),
                      rows = weights.size() / std::max<std::size_t>(keys, 1);
    AttentionGradients<T> gradients;
    gradients.value = sums_over_queries(forward.take("attention_weights"), mask, grad_context,
                                        call.value.shape(1), call.sum_type);

    Tensor4<T> by_scores = matmul(grad_context, transposed(call.value), call.sum_type);
    recorder.record("grad_attention_weights", by_scores);
    const Tensor4<T> dropout = forward.take("dropout_mask");
    for_each_index(by_scores.size(),
                   [&](std::size_t i) { by_scores.data()[i] *= dropout.data()[i]; });
    recorder.record("grad_weights_before_dropout", by_scores);
    if (call.prob_mod) prob_mod_back(call, weights, by_scores);

    // A sink has no part in weights that are renormalised.
    const bool has_sink = !call.sink.empty();
    const bool counts_sink = has_sink && call.mask_method == MaskMethod::neg_inf;
    Tensor4<T> exp_sink, denominator;
    if (counts_sink) {
        exp_sink = forward.take("exp_sink");
        denominator = forward.take("softmax_denominator");
    }
    gradients.sink.assign(has_sink ? heads : 0, 0.0);
    for_each_index(rows, [&](std::size_t row) {
        T* const by_score = by_scores.data() + row * keys;
        const T *const weight = weights.data() + row * keys, *const allowed =
                                                                 mask.data() + row * keys;
        T mean{0};
        for (std::size_t k = 0; k < keys; ++k)
            if (allowed[k] != T{0}) mean += weight[k] * by_score[k];
        for (std::size_t k = 0; k < keys; ++k)
            by_score[k] = allowed[k] == T{0} ? T{0} : weight[k] * (by_score[k] - mean);
        if (counts_sink)
            gradients.sink[row / weights.shape(2) % heads] -=
                double{exp_sink.data()[row]} / double{denominator.data()[row]} * double{mean};
    });
    for (const Broadcast& bias : call.biases)
        gradients.biases.push_back(bias_gradient(bias, call, by_scores));

    ScoreSettings slopes = call;
    for (NamedFormula& formula : slopes.score_formulas)
        formula.formula = derivative(formula.formula);
    const std::vector<StepUse> taken = steps_taken(call, call.biases.size());
    const auto input_of = [&](std::size_t i) {
        return i == 0 ? ArrayId("scores") : taken[i - 1].step.emits[taken[i - 1].index];
    };
    std::size_t next = taken.size();
    for (std::size_t row = score_steps().size(); row-- > 0;) {
        const ScoreStep& step = score_steps()[row];
        if (step.emits[0] == "capped_scores") recorder.record("grad_capped_scores", by_scores);
        if (step.emits[0] == "scaled_scores") recorder.record("grad_scaled_scores", by_scores);
        for (; next > 0 && &taken[next - 1].step == &step; --next)
            if (std::get<StepBack<T>>(step.back) != nullptr)
                step_back(taken[next - 1], call, slopes, forward.take(input_of(next - 1)), mask,
                          by_scores);
    }
    recorder.record("grad_scores", by_scores);
    gradients.query = multiply_values(by_scores, mask, call.key, call.sum_type);
    gradients.key =
        sums_over_queries(by_scores, mask, call.query, call.key.shape(1), call.sum_type);
    return gradients;
}

template AttentionGradients<float> attend_backward(const AttentionCall<float>&,
                                                   const Tensor4<float>&, Recorder&);
template AttentionGradients<double> attend_backward(const AttentionCall<double>&,
                                                    const Tensor4<double>&, Recorder&);

}  // namespace attn
