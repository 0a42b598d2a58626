// The operator in plain loops, step by step as in the notebooks: computes every intermediate array,
// in float32 and float64, and is the reference for every faster path.
#include <iterator>

#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>

#include "core/base/torch_math.hpp"
#include "core/operator/merge.hpp"
#include "core/operator/products.hpp"
#include "core/operator/row_statistics.hpp"
#include "core/operator/top_k.hpp"

namespace attn {
namespace {

/// The tensor itself as an xtensor expression.
template <class T>
auto in_xt(const Tensor4<T>& x) {
    return xt::adapt(x.data(), x.size(), xt::no_ownership(), x.shape());
}

/// The value of an expression of rank 4.
template <class Expression, class T = typename Expression::value_type>
Tensor4<T> evaluated(const Expression& expression) {
    const auto& shape = expression.shape();
    Tensor4<T> x = Tensor4<T>::from_shape({shape[0], shape[1], shape[2], shape[3]});
    if (is_dry_run()) return x;
    auto to = xt::adapt(x.data(), x.size(), xt::no_ownership(), x.shape());
    xt::noalias(to) = expression;
    return x;
}

/// x.sum(dim=-1, keepdim=True), (batch, heads, q_len, 1).
template <class T>
Tensor4<T> row_sums(const Tensor4<T>& x) {
    Tensor4<T> sums = Tensor4<T>::from_shape({x.shape(0), x.shape(1), x.shape(2), 1});
    for_each_index(sums.size(), [&](std::size_t row) {
        sums.data()[row] = tensor_sum(x.data() + row * x.shape(3), x.shape(3));
    });
    return sums;
}

/// Applies one step to every row of scores, in place.
template <class T>
void take_step(const StepUse& use, Tensor4<T>& scores, const AttentionCall<T>& call) {
    const std::size_t keys = scores.shape(3);
    for_each_index(scores.size() / keys, [&](std::size_t row) {
        std::get<ApplyStep<T>>(use.step.apply)(std::span(scores.data() + row * keys, keys),
                                               score_row(call, call, scores.shape(), row),
                                               use.index);
    });
}

/// Applies every step, in place, and records the scores after each under its name, even if it is
/// off and leaves them unchanged.
template <class T>
void modify(Tensor4<T>& scores, const AttentionCall<T>& call, Recorder& recorder) {
    for (const ScoreStep& step : score_steps()) {
        const std::size_t times = step.times(call, call.biases.size());
        for (std::size_t index = 0; index < times; ++index) {
            take_step({step, index}, scores, call);
            if (index < std::size(step.emits)) recorder.record(step.emits[index], scores);
        }
        if (times == 0) recorder.record(step.emits[0], scores);
    }
}

/// Changes the weights by the formula, but not those of masked keys, which stay 0.
template <class T>
void modify_weights(Tensor4<T>& weights, const Tensor4<T>& mask, const AttentionCall<T>& call) {
    const std::size_t heads = weights.shape(1), rows = weights.shape(2), keys = weights.shape(3);
    for_each_index(weights.shape(0) * heads * rows, [&](std::size_t row) {
        T* const weight = weights.data() + row * keys;
        compute_row(call.prob_mod, call.sizes,
                    {row / rows / heads, row / rows % heads, call.first_query + row % rows},
                    call.first_key, std::span(weight, keys));
        for (std::size_t k = 0; k < keys; ++k)
            if (mask.data()[row * keys + k] == T{0}) weight[k] = T{0};
    });
}

/// Of an additive mask.
bool blocks(double bias) {
    return bias == -std::numeric_limits<double>::infinity();
}

template <class T>
bool allows(const AttentionCall<T>& call, std::size_t b, std::size_t h, std::size_t q,
            std::size_t k) {
    return call.mask.allows(b, h, q, k) &&
           std::none_of(call.biases.begin(), call.biases.end(),
                        [&](const Broadcast& bias) { return blocks(bias.at(b, h, q, k)); });
}

/// 1 where `allows` is true for batch, head, query and key, otherwise 0, in the shape of the
/// scores.
template <class T, class Allows>
Tensor4<T> mask_where(const AttentionCall<T>& call, const Tensor4<T>& scores, Allows allows) {
    Tensor4<T> mask = Tensor4<T>::from_shape(scores.shape());
    const std::size_t heads = mask.shape(1), rows = mask.shape(2), keys = mask.shape(3);
    for_each_index(mask.shape(0) * heads * rows, [&](std::size_t row) {
        const std::size_t b = row / rows / heads, h = row / rows % heads, q = row % rows;
        for (std::size_t k = 0; k < keys; ++k)
            mask.data()[row * keys + k] = allows(b, h, call.first_query + q, k) ? T{1} : T{0};
    });
    return mask;
}

/// Where a query may attend.
template <class T>
Tensor4<T> mask_of(const AttentionCall<T>& call, const Tensor4<T>& scores) {
    if (call.mask.rules().empty() && call.biases.empty()) {
        Tensor4<T> mask = Tensor4<T>::from_shape(scores.shape());
        mask.fill(T{1});
        return mask;
    }
    return mask_where(call, scores,
                      [&](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
                          return allows(call, b, h, q, k);
                      });
}

/// Leaves of the allowed keys those of the highest scores.
template <class T>
void keep_top(const Tensor4<T>& scores, Tensor4<T>& mask, std::size_t count) {
    const std::size_t keys = scores.shape(3);
    for_each_index(scores.size() / keys, [&](std::size_t row) {
        keep_highest(std::span<const T>(scores.data() + row * keys, keys),
                     std::span<T>(mask.data() + row * keys, keys), count);
    });
}

/// Where each rule, or the rules of one name, alone allow a query to attend.
template <class T>
void keep_rules(const AttentionCall<T>& call, const Tensor4<T>& scores, Recorder& recorder) {
    const auto record = [&](ArrayId allowed, const auto& allows_by_rule) {
        if (recorder.records(allowed))
            recorder.record(allowed, mask_where(call, scores, allows_by_rule));
    };
    ArraySet joined;  // a formula may be several rules
    for (const auto& [allowed, rule] : call.mask.rules())
        if (allowed) joined.add(*allowed);
    joined.for_each([&](ArrayId id) {
        record(id, [&](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
            return std::ranges::all_of(call.mask.rules(), [&](const Mask::NamedRule& named) {
                return named.allowed != id ||
                       named.rule->allows(b, h, q, call.mask.first_key() + k);
            });
        });
    });
    for (std::size_t i = 0; i < std::min(call.biases.size(), std::size(allowed_by_biases)); ++i)
        record(allowed_by_biases[i],
               [&](auto... index) { return !blocks(call.biases[i].at(index...)); });
}

/// The notebooks' first way to mask: softmax over all keys, times the mask, rows divided by their
/// sums. Rows where masked keys leave a sum of 0 or NaN are taken from `direct`, the softmax over
/// the allowed keys, which they equal without rounding.
template <class T>
Tensor4<T> renormalize(const Tensor4<T>& masked_weights, const Tensor4<T>& direct,
                       Recorder& recorder) {
    Tensor4<T> total = row_sums(masked_weights);
    recorder.record("masked_total", total);
    const auto usable = in_xt(total) >= std::numeric_limits<T>::min();
    return evaluated(xt::where(usable, in_xt(masked_weights) / in_xt(total), in_xt(direct)));
}

/// The logsumexp of a part (RowSum) in double, from the scores that enter the softmax. Where the
/// softmax's own is not finite, it is that.
template <class T>
void widen_logsumexp(const Tensor4<T>& scores, const Tensor4<T>& rounded, double* logsumexp) {
    constexpr double lowest = -std::numeric_limits<double>::infinity();
    const std::size_t keys = scores.shape(3);
    for_each_index(rounded.size(), [&](std::size_t row) {
        const std::span score(scores.data() + row * keys, keys);
        logsumexp[row] = lowest;
        if (std::all_of(score.begin(), score.end(), [&](T x) { return x == T(lowest); })) return;
        const auto shift = static_cast<double>(*std::max_element(score.begin(), score.end()));
        double sum = 0;
        for (const T x : score) sum += std::exp(static_cast<double>(x) - shift);
        logsumexp[row] = logsumexp_of(shift, sum);
        if (const T own = rounded.data()[row]; !std::isfinite(own) && logsumexp[row] != lowest)
            logsumexp[row] = static_cast<double>(own);
    });
}

}  // namespace

template <class T>
Tensor4<T> attend_from_scores(const AttentionCall<T>& call, Tensor4<T> scores, Recorder& recorder,
                              double* wide_logsumexp) {
    const T masked = -std::numeric_limits<T>::infinity();
    recorder.record("scores", scores);
    Tensor4<T> modified = scores;
    modify(modified, call, recorder);

    Tensor4<T> mask = mask_of(call, scores);
    if (call.top_k != 0) {
        keep_top(modified, mask, call.top_k);
        recorder.record("allowed_by_top_k", mask);
    }
    recorder.record("mask", mask);
    const auto where_allowed = [&](Tensor4<T> values, T otherwise) {
        for_each_index(values.size(), [&](std::size_t i) {
            if (mask.data()[i] == T{0}) values.data()[i] = otherwise;
        });
        return values;
    };
    keep_rules(call, scores, recorder);
    if (recorder.records("masked_scores")) {
        Tensor4<T> masked_scores = where_allowed(scores, masked);
        recorder.record("masked_scores", masked_scores);
    }

    Tensor4<T> weights;
    if (call.mask_method == MaskMethod::neg_inf) {
        Tensor4<T> biased = where_allowed(std::move(modified), masked);
        recorder.record("biased_scores", biased);
        auto [softmaxed, logsumexp] =
            softmax(biased, mask, call.sink, call.softmax_type, &recorder);
        recorder.record("logsumexp", logsumexp);
        if (wide_logsumexp != nullptr) widen_logsumexp(biased, logsumexp, wide_logsumexp);
        weights = std::move(softmaxed);
        recorder.finish("softmax_weights", weights);
        record_statistics(call, biased, mask, weights, recorder);
    } else {
        recorder.record("biased_scores", modified);
        const Tensor4<T> seen = evaluated(xt::cast<T>(xt::not_equal(in_xt(modified), masked)));
        auto [softmaxed, logsumexp] =
            softmax(modified, seen, call.sink, call.softmax_type, &recorder);
        recorder.record("unmasked_weights", softmaxed);
        recorder.record("logsumexp", logsumexp);
        Tensor4<T> masked_weights = where_allowed(std::move(softmaxed), T{0});
        recorder.record("masked_weights", masked_weights);
        const Tensor4<T> allowed = where_allowed(modified, masked);
        weights = renormalize(masked_weights, softmax(allowed, mask, {}, call.softmax_type).weights,
                              recorder);
        recorder.finish("softmax_weights", weights);
        record_statistics(call, allowed, mask, weights, recorder);
    }
    recorder.record("softmax_weights", weights);
    if (call.prob_mod) modify_weights(weights, mask, call);
    recorder.record("weights_before_dropout", weights);
    if (call.dropout.p != 0 || recorder.records("dropout_mask")) {
        Tensor4<T> dropout = dropout_mask<T>(call.dropout, call.first_query, weights.shape());
        recorder.record("dropout_mask", dropout);
        weights = evaluated(in_xt(weights) * in_xt(dropout));
    }
    recorder.record("attention_weights", weights);

    Tensor4<T> context = multiply_values(weights, mask, call.value, call.sum_type);
    recorder.record("head_outputs", context);
    return context;
}

template <class T>
Tensor4<T> attend(const AttentionCall<T>& call, Recorder& recorder, double* wide_logsumexp) {
    return attend_from_scores(call, matmul(call.query, transposed(call.key), call.sum_type),
                              recorder, wide_logsumexp);
}

template Tensor4<float> attend(const AttentionCall<float>&, Recorder&, double*);
template Tensor4<double> attend(const AttentionCall<double>&, Recorder&, double*);
template Tensor4<float> attend_from_scores(const AttentionCall<float>&, Tensor4<float>, Recorder&,
                                           double*);
template Tensor4<double> attend_from_scores(const AttentionCall<double>&, Tensor4<double>,
                                            Recorder&, double*);

}  // namespace attn
