// The stages of a layer: functions on tensors that follow the plan. `layer.cpp` is their order.
#pragma once

#include <optional>

#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/weights.hpp"
#include "core/operator/attention.hpp"
#include "core/operator/recorder.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// What every stage works with. Each stage records the arrays that it makes.
struct Stage {
    const Plan& plan;
    ThreadPool& pool;
    Recorder& recorder;
};

/// x, (batch, tokens, d_in), normed if there is a norm.
template <class T>
Tensor3<T> norm(const Stage& stage, const std::optional<InputNorm>& norm, Tensor3<T> x);

/// A call with the queries of x and the keys and values of the source, which has the new keys that
/// the plan uses and may be x. Without weights each head has its own columns of x; each independent
/// head has all of them.
template <class T>
AttentionCall<T> project(const Stage& stage, const LayerWeights<T>* weights, const Tensor3<T>& x,
                         const Tensor3<T>& source);

/// The same of queries, keys and values that are given, with all keys, in any rank that the plan
/// admits.
template <class T>
AttentionCall<T> split(const Stage& stage, Array<T> query, Array<T> key, Array<T> value);

/// Applies the norm, if there is one, to each head of each token, or to all its heads together.
template <class T>
void normalise_heads(const std::optional<InputNorm>& norm, Tensor4<T>& heads);

/// Divides each query and key of a head by sqrt(sum of its squares + 1e-6), as Gated DeltaNet does.
template <class T>
void normalise_heads(AttentionCall<T>& call);

/// Decay, beta and past state of linear attention, which are of any shape that the plan admits; the
/// plan's constants where they are absent. Decay becomes e^g.
template <class T>
Recurrence<T> gates(const Stage& stage, Array<T> decay, Array<T> beta, Array<T> past_state);

/// Rotates queries and keys by their positions, then prepends the cached keys and values, which are
/// of any rank that the plan admits. New tokens follow the cached ones, whose keys were rotated
/// when they were new.
template <class T>
void rotate_and_append(const Stage& stage, AttentionCall<T>& call, Array<T> past_key,
                       Array<T> past_value);

/// The context of each query: (batch, 1, rows, heads * d_v), or (batch, heads, rows, d_v) if the
/// plan shows separate heads; without elements if nothing needs it.
template <class T>
Tensor4<T> attend(const Stage& stage, AttentionCall<T> call);

/// (batch, 1, rows, heads * d_v) to (batch, 1, rows, d_out).
template <class T>
Tensor4<T> project_out(const Stage& stage, const Projection<T>& projection, Tensor4<T> heads);

}  // namespace attn
