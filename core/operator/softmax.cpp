#include "core/operator/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/torch_math.hpp"

namespace attn {
namespace {

/// The intermediate values of a softmax, row by row, for a recorder that records them.
template <class T>
class SoftmaxSteps {
public:
    SoftmaxSteps(const Tensor4<T>& scores, Recorder* recorder)
        : recorder_(recorder != nullptr && recorder->records("exp_scores") ? recorder : nullptr) {
        if (recorder_ == nullptr) return;
        powers_ = Tensor4<T>::from_shape(scores.shape());
        shift_ = exp_sink_ = total_ =
            Tensor4<T>::from_shape({scores.shape(0), scores.shape(1), scores.shape(2), 1});
    }

    void note(std::size_t row, T shift, const T* powers, T exp_sink, T total) {
        if (recorder_ == nullptr) return;
        shift_.data()[row] = shift;
        const std::size_t keys = powers_.shape(3);
        std::copy_n(powers, keys, powers_.data() + row * keys);
        exp_sink_.data()[row] = exp_sink;
        total_.data()[row] = total;
    }

    void record(bool has_sink) const {
        if (recorder_ == nullptr) return;
        recorder_->record("row_max", shift_);
        recorder_->record("exp_scores", powers_);
        recorder_->record("softmax_denominator", total_);
        if (has_sink) recorder_->record("exp_sink", exp_sink_);
    }

private:
    Recorder* recorder_;
    Tensor4<T> shift_, powers_, exp_sink_, total_;
};

}  // namespace

template <class T>
Softmax<T> softmax(const Tensor4<T>& scores, const Tensor4<T>& mask,
                   const std::vector<double>& sink, Recorder* recorder) {
    const std::size_t heads = scores.shape(1), rows = scores.shape(2), keys = scores.shape(3);
    Tensor4<T> weights = Tensor4<T>::from_shape(scores.shape());
    Tensor4<T> logsumexp = Tensor4<T>::from_shape({scores.shape(0), heads, rows, 1});
    SoftmaxSteps<T> steps(scores, recorder);
    const std::size_t count = is_dry_run() ? 0 : logsumexp.size();
    for (std::size_t row = 0; row < count; ++row) {
        const T* score = scores.data() + row * keys;
        const T* allowed = mask.data() + row * keys;
        T* weight = weights.data() + row * keys;
        const bool has_sink = !sink.empty();
        const T sink_logit = has_sink ? static_cast<T>(sink_of(sink, row / rows % heads)) : T{0};
        if (std::all_of(allowed, allowed + keys, [](T x) { return x == T{0}; })) {
            std::fill_n(weight, keys, T{0});
            logsumexp.data()[row] = has_sink ? sink_logit : -std::numeric_limits<T>::infinity();
            steps.note(row, sink_logit, weight, has_sink ? T{1} : T{0}, has_sink ? T{1} : T{0});
            continue;
        }
        T shift = *std::max_element(score, score + keys);
        if (has_sink) shift = std::max(shift, sink_logit);
        exponentials(score, keys, shift, weight);
        T total = softmax_sum(weight, keys);
        const T exp_sink = has_sink ? torch_exp(sink_logit - shift) : T{0};
        if (has_sink) total += exp_sink;
        steps.note(row, shift, weight, exp_sink, total);
        const T reciprocal = T{1} / total;
        for (std::size_t k = 0; k < keys; ++k) weight[k] *= reciprocal;
        logsumexp.data()[row] = shift + std::log(total);
    }
    steps.record(!sink.empty());
    return {std::move(weights), std::move(logsumexp)};
}

template Softmax<float> softmax(const Tensor4<float>&, const Tensor4<float>&,
                                const std::vector<double>&, Recorder*);
template Softmax<double> softmax(const Tensor4<double>&, const Tensor4<double>&,
                                 const std::vector<double>&, Recorder*);

}  // namespace attn
