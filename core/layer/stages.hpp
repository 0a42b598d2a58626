// The stages of a layer: functions on tensors that follow the plan. `layer.cpp` is their order.
#pragma once

#include <optional>
#include <span>

#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/weights.hpp"
#include "core/operator/attention.hpp"
#include "core/operator/recorder.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// The stages in T, with what each works with. Each records the arrays that it makes.
template <class T>
struct Stages {
    const Plan& plan;
    ThreadPool& pool;
    Recorder& recorder;

    /// x, (batch, tokens, d_in), normed if there is a norm.
    Tensor3<T> norm(const std::optional<InputNorm>& norm, Tensor3<T> x) const;

    /// A call with the queries of x and the keys and values of the source, which has the new keys
    /// that the plan uses and may be x; the weights' norms are applied to the heads. Without
    /// weights each head has its own columns of x; each independent head has all of them.
    AttentionCall<T> project(const LayerWeights<T>* weights, const Tensor3<T>& x,
                             const Tensor3<T>& source) const;

    /// The same of queries, keys and values that are given, with all keys, in any rank that the
    /// plan admits.
    AttentionCall<T> split(Array<T> query, Array<T> key, Array<T> value) const;

    /// Decay, beta and past state of linear attention, which are of any shape that the plan admits;
    /// the plan's constants where they are absent. Decay becomes e^g.
    Recurrence<T> gates(Array<T> decay, Array<T> beta, Array<T> past_state) const;

    /// Divides queries and keys by their lengths if the plan asks for it, rotates them by their
    /// positions, then prepends the cached keys and values, which are of any rank that the plan
    /// admits. New tokens follow the cached ones, whose keys were rotated when they were new.
    void rotate_and_append(AttentionCall<T>& call, Array<T> past_key, Array<T> past_value) const;

    /// The context of each query: (batch, 1, rows, heads * d_v), or (batch, heads, rows, d_v) if
    /// the plan shows separate heads; without elements if nothing needs it.
    Tensor4<T> attend(AttentionCall<T>&& call) const;

    /// (batch, 1, rows, heads * d_v) to (batch, 1, rows, d_out).
    Tensor4<T> project_out(const Projection<T>& projection, Tensor4<T> heads) const;

private:
    void project_rows(const Tensor3<T>& x, std::span<const ProjectionTo<T>> to) const;
};

}  // namespace attn
