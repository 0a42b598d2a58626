// The softmax of scores, every operation rounded as in PyTorch.
#pragma once

#include <vector>

#include "core/base/tensor.hpp"
#include "core/operator/recorder.hpp"

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

/// Along the last axis, with the row maximum subtracted; a sink is one more logit, without a
/// weight. Only fully masked rows give zeros; scores that overflowed give NaN, as in PyTorch. The
/// steps are passed to the recorder, if any.
template <class T>
Softmax<T> softmax(const Tensor4<T>& scores, const Tensor4<T>& mask,
                   const std::vector<double>& sink, Recorder* recorder = nullptr);

}  // namespace attn
