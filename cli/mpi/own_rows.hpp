// One rank's rows of queries, keys and values.
#pragma once

#include <array>
#include <cstddef>

#include "cli/question/question.hpp"
#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"
#include "core/layer/weights.hpp"
#include "core/plan/division.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

template <class T>
struct QueryRows {
    std::size_t first = 0;  ///< the index of row 0
    Tensor4<T> query;       ///< (batch, heads, rows, d_k) of the share
};

template <class T>
struct KeyRows {
    std::size_t first = 0;  ///< the index of row 0
    Tensor4<T> key, value;  ///< (batch, kv_heads, rows, d) of the share
};

/// The two chunks of each (chunks_of).
template <class T>
using OwnQueries = std::array<QueryRows<T>, 2>;
template <class T>
using OwnKeys = std::array<KeyRows<T>, 2>;

template <class T>
struct OwnRows {
    OwnQueries<T> queries;
    OwnKeys<T> keys;
};

/// Reads a share's rows and, in a layer, projects and rotates them. `plan` is that of the share:
/// its sizes of batch and heads. `operands` has the norm, and `weights` is null without
/// projections. Errors: those of reading.
template <class T>
OwnRows<T> read_own_rows(const Plan& plan, const Share& share, const OperandRows& rows,
                         const Operands& operands, const LayerWeights<T>* weights,
                         ThreadPool& pool);

}  // namespace attn::cli
