#include "core/operator/attention.hpp"

#include "core/base/torch_math.hpp"

namespace attn {
template <class T>
Softmax<T> softmax(const Tensor4<T>& scores, const Tensor4<T>& mask,
                   const std::vector<double>& sink, NumberType type, Recorder* recorder) {
    const std::size_t heads = scores.shape(1), rows = scores.shape(2), keys = scores.shape(3);
    Tensor4<T> weights = Tensor4<T>::from_shape(scores.shape());
    Tensor4<T> logsumexp = Tensor4<T>::from_shape({scores.shape(0), heads, rows, 1});
    // The intermediate values, if they are recorded.
    const bool notes = recorder != nullptr && recorder->records("exp_scores");
    Tensor4<T> shifts, powers, exp_sinks, totals;
    if (notes) {
        powers = Tensor4<T>::from_shape(scores.shape());
        shifts = exp_sinks = totals = Tensor4<T>::from_shape(logsumexp.shape());
    }
    const auto note = [&](std::size_t row, T shift, T exp_sink, T total) {
        if (!notes) return;
        shifts.data()[row] = shift;
        std::copy_n(weights.data() + row * keys, keys, powers.data() + row * keys);
        exp_sinks.data()[row] = exp_sink;
        totals.data()[row] = total;
    };
    for_each_index(logsumexp.size(), [&](std::size_t row) {
        const T* score = scores.data() + row * keys;
        const T* allowed = mask.data() + row * keys;
        T* weight = weights.data() + row * keys;
        const bool has_sink = !sink.empty();
        const T sink_logit = has_sink ? static_cast<T>(sink_of(sink, row / rows % heads)) : T{0};
        if (std::all_of(allowed, allowed + keys, [](T x) { return x == T{0}; })) {
            std::fill_n(weight, keys, T{0});
            logsumexp.data()[row] = has_sink ? sink_logit : -std::numeric_limits<T>::infinity();
            note(row, sink_logit, has_sink ? T{1} : T{0}, has_sink ? T{1} : T{0});
            return;
        }
        T shift = *std::max_element(score, score + keys);
        if (has_sink) shift = std::max(shift, sink_logit);
        const auto in_type = [&](T x) { return is_rounded(type) ? rounded(x, type) : x; };
        if (is_rounded(type)) {
            for (std::size_t k = 0; k < keys; ++k)
                weight[k] = in_type(torch_exp(in_type(score[k] - shift)));
        } else {
            exponentials(score, keys, shift, weight);
        }
        T total = softmax_sum(weight, keys);
        const T exp_sink = has_sink ? in_type(torch_exp(in_type(sink_logit - shift))) : T{0};
        if (has_sink) total += exp_sink;
        total = in_type(total);
        note(row, shift, exp_sink, total);
        const T reciprocal = T{1} / total;
        for (std::size_t k = 0; k < keys; ++k)
            weight[k] = is_rounded(type) ? in_type(weight[k] / total) : weight[k] * reciprocal;
        logsumexp.data()[row] = shift + std::log(total);
    });
    if (notes) {
        recorder->record("row_max", shifts);
        recorder->record("exp_scores", powers);
        recorder->record("softmax_denominator", totals);
        if (!sink.empty()) recorder->record("exp_sink", exp_sinks);
    }
    return {std::move(weights), std::move(logsumexp)};
}

template Softmax<float> softmax(const Tensor4<float>&, const Tensor4<float>&,
                                const std::vector<double>&, NumberType, Recorder*);
template Softmax<double> softmax(const Tensor4<double>&, const Tensor4<double>&,
                                 const std::vector<double>&, NumberType, Recorder*);

}  // namespace attn
