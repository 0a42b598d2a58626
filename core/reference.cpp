// The operator in plain xtensor, step by step as the notebooks do it: gives every intermediate,
// in float32 and in float64, and is the oracle of every faster path.
#include <algorithm>
#include <cmath>
#include <limits>

#include <xtensor/xbuilder.hpp>
#include <xtensor/xeval.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>

#include "core/attention.hpp"
#include "core/torch_math.hpp"

namespace attn {
namespace {

/// (batch, heads, m, k) times (batch, heads, k, n).
template <class T>
Tensor4<T> matmul(const Tensor4<T>& a, const Tensor4<T>& b) {
    const std::size_t m = a.shape(2), k = a.shape(3), n = b.shape(3);
    Tensor4<T> product = Tensor4<T>::from_shape({a.shape(0), a.shape(1), m, n});
    std::vector<T> sums(n);
    for (std::size_t row = 0; row < a.shape(0) * a.shape(1) * m; ++row) {
        multiply_row(a.data() + row * k, k, b.data() + row / m * k * n, sums);
        std::copy(sums.begin(), sums.end(), product.data() + row * n);
    }
    return product;
}

/// Along the last axis: (batch, heads, q_len, 1).
template <class T>
Tensor4<T> row_sums(const Tensor4<T>& x) {
    Tensor4<T> sums = Tensor4<T>::from_shape({x.shape(0), x.shape(1), x.shape(2), 1});
    for (std::size_t row = 0; row < sums.size(); ++row)
        sums.data()[row] = row_sum(x.data() + row * x.shape(3), x.shape(3));
    return sums;
}

/// The scores times the scale. The default scale divides by sqrt(d_k), as PyTorch programs write
/// it: a factor would round differently.
template <class T>
Tensor4<T> scale_scores(const Tensor4<T>& scores, double scale, std::size_t d_k) {
    const double root = std::sqrt(static_cast<double>(d_k));
    if (scale == 1.0 / root) return scores / static_cast<T>(root);
    return scores * static_cast<T>(scale);
}

template <class T>
struct Softmax {
    Tensor4<T> weights;
    Tensor4<T> logsumexp;  // (batch, heads, q_len, 1)
};

/// Along the last axis, with the row maximum subtracted. Only a row that the mask blocks wholly
/// gives zeros; scores that overflowed give NaN, as in PyTorch.
// Reductions are evaluated before use: left lazy inside a larger expression, xtensor 0.24 reads
// outside their buffer.
template <class T>
Softmax<T> softmax(const Tensor4<T>& scores, const Tensor4<T>& mask) {
    const Tensor4<T> peak = xt::amax(scores, {3}, xt::keep_dims);
    const Tensor4<T> has_key = xt::amax(mask, {3}, xt::keep_dims);
    const Tensor4<T> shift = xt::where(has_key > T{0}, peak, T{0});
    Tensor4<T> powers = scores - shift;
    for (T& x : powers) x = torch_exp(x);
    const Tensor4<T> total = row_sums(powers);
    const Tensor4<T> reciprocal = xt::where(has_key > T{0}, T{1} / total, T{0});
    return {powers * reciprocal, shift + xt::log(total)};
}

/// 1 where a query may attend, 0 where not, in the shape of the scores.
template <class T>
Tensor4<T> mask_of(const AttentionCall<T>& call, const Tensor4<T>& scores) {
    Tensor4<T> mask = Tensor4<T>::from_shape(scores.shape());
    for (std::size_t b = 0; b < mask.shape(0); ++b)
        for (std::size_t h = 0; h < mask.shape(1); ++h)
            for (std::size_t q = 0; q < mask.shape(2); ++q)
                for (std::size_t k = 0; k < mask.shape(3); ++k)
                    mask(b, h, q, k) = call.mask.allows(call.first_query + q, k) ? T{1} : T{0};
    return mask;
}

/// The notebooks' first way to mask: softmax over all keys, times the mask, rows divided by their
/// sums.
template <class T>
Tensor4<T> renormalize(const Tensor4<T>& masked_weights) {
    const Tensor4<T> total = row_sums(masked_weights);
    return xt::where(xt::equal(total, T{0}), T{0}, masked_weights / total);
}

}  // namespace

template <class T>
Tensor4<T> attend(const AttentionCall<T>& call, Recorder& recorder) {
    const T blocked = -std::numeric_limits<T>::infinity();
    const auto keep = [&](std::string_view name, const Tensor4<T>& values) {
        recorder.keep(name, values, "q_len", "kv_len");
    };

    const Tensor4<T> scores = matmul<T>(call.query, xt::transpose(call.key, {0, 1, 3, 2}));
    keep("scores", scores);
    const Tensor4<T> scaled = scale_scores(scores, call.scale, call.query.shape(3));
    keep("scaled_scores", scaled);
    keep("capped_scores", scaled);

    const Tensor4<T> mask = mask_of(call, scores);
    keep("mask", mask);
    if (recorder.wants("masked_scores"))
        keep("masked_scores", xt::where(mask > T{0}, scores, blocked));

    Tensor4<T> weights;
    if (call.mask_method == MaskMethod::neg_inf) {
        const Tensor4<T> biased = xt::where(mask > T{0}, scaled, blocked);
        keep("biased_scores", biased);
        auto [softmaxed, logsumexp] = softmax(biased, mask);
        recorder.keep("logsumexp", logsumexp, "q_len", "");
        weights = std::move(softmaxed);
    } else {
        keep("biased_scores", scaled);
        const auto [softmaxed, logsumexp] = softmax<T>(scaled, xt::ones_like(mask));
        recorder.keep("logsumexp", logsumexp, "q_len", "");
        const Tensor4<T> masked_weights = softmaxed * mask;
        keep("masked_weights", masked_weights);
        weights = renormalize(masked_weights);
    }
    keep("weights_before_dropout", weights);
    keep("dropout_mask", call.dropout);
    weights *= call.dropout;
    keep("attention_weights", weights);

    Tensor4<T> context = matmul(weights, call.value);
    recorder.keep("head_outputs", context, "q_len", "d_v");
    return context;
}

template Tensor4<float> attend(const AttentionCall<float>&, Recorder&);
template Tensor4<double> attend(const AttentionCall<double>&, Recorder&);

}  // namespace attn
