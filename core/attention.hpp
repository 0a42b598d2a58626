// The attention operator on queries, keys and values that are split into heads.
#pragma once

#include <vector>

#include "core/mask.hpp"
#include "core/modifiers.hpp"
#include "core/recorder.hpp"
#include "core/settings.hpp"
#include "core/tensor.hpp"

namespace attn {

/// One call of the operator, per batch entry and head:
/// context = dropout(softmax(mask(modifiers(scale * query key^T)))) value.
template <class T>
struct AttentionCall {
    Tensor4<T> query;  ///< (batch, heads, q_len, d_k)
    Tensor4<T> key;    ///< (batch, kv_heads, kv_len, d_k); query head h uses h / (heads / kv_heads)
    Tensor4<T> value;  ///< (batch, kv_heads, kv_len, d_v)
    double scale = 1;
    std::vector<ScoreModifier> modifiers;  ///< on the scaled scores, in this order
    Mask mask;
    MaskMethod mask_method = MaskMethod::neg_inf;
    std::vector<double> sink;     ///< (heads), a logit in the denominator; empty: none
    std::size_t first_query = 0;  ///< the index that the mask gives to query row 0
    std::ptrdiff_t offset = 0;    ///< from a query's index to its position among the keys
    Tensor4<T> dropout;           ///< (batch, heads, q_len, kv_len): 0 or 1/(1-p)
};

/// The context of every query, (batch, heads, q_len, d_v); hands each step that the recorder wants
/// to it under its name in `array_names`. A query with no key left gives weights 0 and context 0,
/// and a logsumexp of -Infinity. Values of blocked keys are not
/// read. All arithmetic is in T, in PyTorch's order (torch_math.hpp). Source: Vaswani et al. 2017,
/// section 3.2.1; ONNX Attention, opset 25.
template <class T>
Tensor4<T> attend(const AttentionCall<T>& call, Recorder& recorder);

}  // namespace attn
