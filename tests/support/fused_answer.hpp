// One call's answer by a fused kernel, and by the reference.
#pragma once

#include "core/fused/attend_fused.hpp"
#include "core/kernels/dispatch.hpp"
#include "tests/support/support.hpp"

namespace attn::test {

/// (batch, heads, q_len, ...): d_v of the context, kv_len of weights and unscaled scores, 1 of the
/// logsumexp. Weights and scores are empty where they are not asked for.
template <class T>
struct Answer {
    Tensor4<T> context, weights, scores, logsumexp;
};

template <class T>
Answer<T> fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                bool with_weights = true, std::size_t threads = 2) {
    const std::size_t b = call.query.shape(0), h = call.query.shape(1), q = call.query.shape(2);
    Answer<T> answer;
    answer.context = Tensor4<T>::from_shape({b, h, q, call.value.shape(3)});
    const std::size_t row = call.value.shape(3);
    FusedOutputs<T> outputs{{answer.context.data(), h * q * row, q * row, row}};
    answer.logsumexp = Tensor4<T>::from_shape({b, h, q, 1});
    outputs.logsumexp = answer.logsumexp.data();
    if (with_weights) {
        answer.weights = Tensor4<T>::from_shape({b, h, q, call.key.shape(2)});
        answer.scores = answer.weights;
        outputs.weights = answer.weights.data();
        outputs.scores = answer.scores.data();
    }
    ThreadPool workers(threads);
    attend_fused(kernel, call, outputs, workers);
    return answer;
}

/// For large calls: under a sanitizer the fastest kernel alone.
inline std::vector<const kernels::Kernel*> kernels_for_large_calls() {
    return one_in == 1 ? kernels::supported() : std::vector{kernels::supported().back()};
}

template <class T>
Answer<T> reference(const AttentionCall<T>& call) {
    Recorder recorder({"attention_weights", "scores", "logsumexp"}, {});
    Answer<T> answer;
    answer.context = attend(call, recorder);
    for (const NamedArray& array : recorder.take()) {
        Array<T> values = std::get<Array<T>>(array.values);
        if (array.name == "logsumexp") {
            auto shape = values.shape();
            shape.push_back(1);
            values.reshape(shape);
            answer.logsumexp = Tensor4<T>(values);
        } else {
            (array.name == "scores" ? answer.scores : answer.weights) = Tensor4<T>(values);
        }
    }
    return answer;
}

}  // namespace attn::test
