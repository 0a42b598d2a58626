// The attention operator on queries, keys and values that are split into heads.
#pragma once

#include "core/operator/dropout.hpp"
#include "core/operator/mask.hpp"
#include "core/operator/recorder.hpp"
#include "core/operator/score_steps.hpp"

namespace attn {

/// A head's sink; `sink` holds one for all heads, or one each.
inline double sink_of(const std::vector<double>& sink, std::size_t head) {
    return sink[sink.size() == 1 ? 0 : head];
}

template <class T>
struct Softmax {
    Tensor4<T> weights;
    Tensor4<T> logsumexp;  ///< (batch, heads, q_len, 1)
};

/// Along the last axis, with the row maximum subtracted, every operation rounded as in PyTorch; a
/// sink is one more logit, without a weight. Only fully masked rows give zeros; scores that
/// overflowed give NaN, as in PyTorch. The steps are passed to the recorder, if any.
/// Each step is rounded to `type`, except in float64.
template <class T>
Softmax<T> softmax(const Tensor4<T>& scores, const Tensor4<T>& mask,
                   const std::vector<double>& sink, NumberType type = NumberType::float32,
                   Recorder* recorder = nullptr);

/// What linear attention takes besides queries, keys and values; see core/linear/linear.hpp. A
/// tensor without elements is absent.
template <class T>
struct Recurrence {
    Tensor4<T> decay;           ///< e^g: (batch, kv_heads, kv_len, 1 or d_k)
    Tensor4<T> beta;            ///< (batch, kv_heads, kv_len, 1)
    Tensor4<T> past_state;      ///< (batch, kv_heads, d_k, d_v)
    std::vector<T> bonus = {};  ///< (kv_heads, d_k), or empty
};

/// One call of the operator, per batch entry and head:
/// context = dropout(prob_mod(softmax(mask(steps(query key^T))))) value, the steps being those of
/// score_steps.hpp.
template <class T>
struct AttentionCall : ScoreSettings {
    NumberType type = NumberType::float32;          ///< of its arrays
    NumberType softmax_type = NumberType::float32;  ///< of the steps in a softmax
    NumberType sum_type = NumberType::float32;      ///< of sums of products, after each addition
    Tensor4<T> query;                               ///< (batch, heads, q_len, d_k)
    Tensor4<T> key;    ///< (batch, kv_heads, kv_len, d_k); query head h uses h / (heads / kv_heads)
    Tensor4<T> value;  ///< (batch, kv_heads, kv_len, d_v)
    double scale = 1;
    std::vector<Broadcast> biases;  ///< additive masks, rounded to T; -Infinity masks
    Mask mask;                      ///< all other masks
    MaskMethod mask_method = MaskMethod::neg_inf;
    std::size_t top_k = 0;        ///< of the allowed keys, those of the highest scores; 0: all
    std::vector<double> sink;     ///< a logit in the denominator, see sink_of; empty: none
    std::size_t first_query = 0;  ///< the index that the mask gives to query row 0
    std::size_t first_key = 0;    ///< the number of key 0 in formulas
    ExpressionSizes sizes;        ///< of formulas: those of the whole question
    Expression prob_mod;          ///< of the weights before dropout; empty: none
    PositionOffset offset;
    std::size_t top = 0;  ///< keys of each query in top_keys and top_weights
    Dropout dropout;
    Recurrence<T> recurrence;  ///< of linear attention, which takes no masks, steps and dropout
};

/// Row `row` of scores (batch, heads, queries of the call, keys), for steps of these settings.
template <class T>
ScoreRow score_row(const AttentionCall<T>& call, const ScoreSettings& asked,
                   const std::array<std::size_t, 4>& shape, std::size_t row) {
    const std::size_t b = row / shape[2] / shape[1], h = row / shape[2] % shape[1],
                      q = call.first_query + row % shape[2];
    return {asked,
            call.scale,
            call.biases.data(),
            shape[1],
            call.query.shape(3),
            b,
            h,
            q,
            as_signed(q) + call.offset.of(b),
            &call.sizes,
            call.first_key,
            call.type};
}

/// Numbers the keys of a call from `first_key` of a sequence of `kv_len` keys, of which it has
/// some: masks, additive masks, positions and dropout become those of its keys.
template <class T>
void number_keys_from(AttentionCall<T>& call, std::size_t first_key, std::size_t kv_len) {
    call.mask = call.mask.from_key(first_key);
    for (Broadcast& bias : call.biases) bias = bias.from_key(first_key);
    call.offset = call.offset.from_key(first_key);
    call.first_key += first_key;
    call.dropout.first_key += first_key;
    call.dropout.kv_len = kv_len;
}

/// The context of every query, (batch, heads, q_len, d_v), step by step. Passes the steps to the
/// recorder under their names in `all_arrays`. A query whose keys are all masked has weights 0 and
/// context 0, and a logsumexp of -Infinity, or of the sink. Values of masked keys are not read. All
/// arithmetic is in T, in PyTorch's order (torch_math.hpp). Source: Vaswani et al. 2017, section
/// 3.2.1; ONNX Attention, opset 25. `wide_logsumexp`, if not null, is set to the logsumexp not
/// rounded to T, (batch, heads, q_len), if the mask method is neg_inf.
template <class T>
Tensor4<T> attend(const AttentionCall<T>& call, Recorder& recorder,
                  double* wide_logsumexp = nullptr);

/// The same from scores, (batch, heads, q_len, kv_len). Of the queries only d_k counts, so they may
/// have no rows; the keys are not used.
template <class T>
Tensor4<T> attend_from_scores(const AttentionCall<T>& call, Tensor4<T> scores, Recorder& recorder,
                              double* wide_logsumexp = nullptr);

}  // namespace attn
