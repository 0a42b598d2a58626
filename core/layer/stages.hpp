// The stages of a layer: functions on tensors that follow the plan. `layer.cpp` is their order.
#pragma once

#include <algorithm>
#include <utility>

#include "core/base/layout.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"
#include "core/operator/attention.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// A matrix or a batch of matrices as (batch, rows, columns).
template <class T>
Tensor3<T> as_batch(Array<T> values) {
    const std::size_t rank = values.dimension();
    return {std::move(values),
            {rank == 3 ? values.shape(0) : 1, values.shape(rank - 2), values.shape(rank - 1)}};
}

/// (batch, rows, heads * d) to (batch, heads, rows, d).
template <class T>
Tensor4<T> split_heads(const Tensor3<T>& x, std::size_t heads) {
    const std::size_t rows = x.shape(1), d = x.shape(2) / heads;
    Tensor4<T> split = Tensor4<T>::from_shape({x.shape(0), heads, rows, d});
    copy_swapped(x.data(), {x.shape(0), rows, heads, d}, split.data());
    return split;
}

/// (batch, rows, d) to (batch, heads, rows, d), the same rows for every head.
template <class T>
Tensor4<T> copy_for_heads(const Tensor3<T>& x, std::size_t heads) {
    Tensor4<T> copies = Tensor4<T>::from_shape({x.shape(0), heads, x.shape(1), x.shape(2)});
    const std::size_t matrix = x.shape(1) * x.shape(2);
    for_each_index(x.shape(0) * heads, [&](std::size_t i) {
        std::copy_n(x.data() + i / heads * matrix, matrix, copies.data() + i * matrix);
    });
    return copies;
}

/// (batch, heads, rows, d) to (batch, 1, rows, heads * d).
template <class T>
Tensor4<T> merge_heads(const Tensor4<T>& x) {
    Tensor4<T> merged =
        Tensor4<T>::from_shape({x.shape(0), 1, x.shape(2), x.shape(1) * x.shape(3)});
    copy_swapped(x.data(), x.shape(), merged.data());
    return merged;
}

/// An operand of sdpa, or cached keys or values, of any rank that the plan admits, as
/// (batch, heads, len, d).
template <class T>
Tensor4<T> unpack(Array<T> values, const Plan& plan, std::size_t heads, bool packed) {
    if (packed) return split_heads(as_batch(std::move(values)), heads);
    const std::size_t rank = values.dimension();
    return {std::move(values), {plan.batch, heads, values.shape(rank - 2), values.shape(rank - 1)}};
}

/// Decay or beta as (batch, kv_heads, tokens, columns of a head). Without `values`, the constants.
template <class T>
Tensor4<T> gate_of_heads(const Plan& plan, Array<T> values, const std::vector<double>& constants) {
    const std::size_t heads = plan.kv_heads, tokens = plan.q_len;
    const bool has_columns_of_heads = plan.projects || plan.packed;
    const std::size_t matrices = plan.batch * (has_columns_of_heads ? 1 : heads) * tokens;
    const std::size_t columns =
        values.dimension() == 0 ? 1 : values.size() / std::max<std::size_t>(matrices, 1);
    if (!constants.empty()) {
        Tensor4<T> gate = Tensor4<T>::from_shape({plan.batch, heads, tokens, 1});
        for_each_index(plan.batch * heads, [&](std::size_t i) {
            std::fill_n(gate.data() + i * tokens, tokens,
                        static_cast<T>(constants[constants.size() == 1 ? 0 : i % heads]));
        });
        return gate;
    }
    if (values.dimension() == 0) return {};
    if (!has_columns_of_heads) return {std::move(values), {plan.batch, heads, tokens, columns}};
    const Tensor3<T> side_by_side(std::move(values), {plan.batch, tokens, columns});
    return columns == 1 ? copy_for_heads(side_by_side, heads) : split_heads(side_by_side, heads);
}

/// Calls f(row, gathered) with each head of each token, or with all its heads together, by the
/// width of the norm: `row` has x's numbers, which what f leaves there replaces, and gathered(y,
/// to) copies those of another tensor in their places.
template <class T, class F>
void for_each_normed_row(const InputNorm& norm, Tensor4<T>& x, const F& f) {
    const std::size_t count = x.shape(1), tokens = x.shape(2), d = x.shape(3);
    const std::size_t together = norm.weight.size() / d;  // 1, or all heads
    std::vector<T> row(norm.weight.size());
    for_each_index(x.shape(0) * tokens * (count / together), [&](std::size_t index) {
        const std::size_t at = index / (count / together),
                          first = index % (count / together) * together;
        const auto part = [&](auto& of, std::size_t i) {
            return &of(at / tokens, first + i, at % tokens, 0);
        };
        const auto gathered = [&](const Tensor4<T>& of, T* to) {
            for (std::size_t i = 0; i < together; ++i) std::copy_n(part(of, i), d, to + i * d);
        };
        gathered(x, row.data());
        f(std::span<T>(row), gathered);
        for (std::size_t i = 0; i < together; ++i) std::copy_n(row.data() + i * d, d, part(x, i));
    });
}

/// The backward pass of the heads' norm, if there is one; `given` has the heads before it.
template <class T>
void normalise_heads_back(const std::optional<InputNorm>& norm, const Tensor4<T>& given,
                          Tensor4<T>& gradients) {
    if (!norm) return;
    std::vector<T> before(norm->weight.size());
    for_each_normed_row(*norm, gradients, [&](std::span<T> row, const auto& gathered) {
        gathered(given, before.data());
        normalise_back(*norm, std::span<const T>(before), row);
    });
}

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
    /// weights each head has its own columns of x; each independent head has all of them. Values
    /// may have another source, of as many rows.
    AttentionCall<T> project(const LayerWeights<T>* weights, const Tensor3<T>& x,
                             const Tensor3<T>& source,
                             const Tensor3<T>* value_source = nullptr) const;

    /// The same of queries, keys and values that are given, with all keys, in any rank that the
    /// plan admits.
    AttentionCall<T> split(Operands& operands) const;

    /// What linear attention takes besides, of any shape that the plan admits; the plan's constants
    /// where gates are absent. Decay becomes e^g, unless it is plain.
    Recurrence<T> recurrence(Operands& operands) const;

    /// Divides queries and keys by their lengths if the plan asks for it, rotates them by their
    /// positions, then prepends the cached keys and values, which are of any rank that the plan
    /// admits. New tokens follow the cached ones, whose keys were rotated when they were new.
    void rotate_and_append(AttentionCall<T>& call, Operands& operands) const;

    /// The context of each query: (batch, 1, rows, heads * d_v), or (batch, heads, rows, d_v) if
    /// the plan shows separate heads; without elements if nothing needs it.
    Tensor4<T> attend(AttentionCall<T>&& call) const;

    /// (batch, 1, rows, heads * d_v) to (batch, 1, rows, d_out).
    Tensor4<T> project_out(const Projection<T>& projection, Tensor4<T> heads) const;

private:
    void project_rows(const Tensor3<T>& x, std::span<const ProjectionTo<T>> to) const;
};

}  // namespace attn
