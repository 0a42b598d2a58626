// A question with its numbers in float64, as the search and the error bounds compute it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/check/conventions.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/operands.hpp"
#include "core/layer/result.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// Rows of numbers and, where they were asked for, bounds on their errors.
struct Numbers {
    std::size_t rows = 0, columns = 0;
    std::vector<double> value;
    std::vector<double> error;  ///< empty: not computed

    bool has_errors() const { return !error.empty(); }
};

/// A weight as nn.Linear stores it, (d_out, d_in), and its bias, or no numbers.
struct ProjectionNumbers {
    std::size_t d_out = 0, d_in = 0;
    std::vector<double> weight, bias;
};

/// What is computed, with nothing left to decide but the conventions. Without projections, the
/// sources of queries, keys and values are the operands.
struct Problem {
    Plan plan;  ///< of the question in float64
    Operands operands;
    /// (batch, tokens, d_in) and so on, flattened to rows, after the norm of inputs.
    std::array<Numbers, 3> source;  ///< of queries, keys and values
    PerTensor<std::optional<ProjectionNumbers>> projection;
    std::optional<InputNorm> query_norm, key_norm;
    std::vector<double> past_key, past_value;  ///< (batch, kv_heads, past_len, d); or empty
    std::vector<double> dropout_kept;          ///< 0 and 1, (batch, heads, q_len, kv_len); or empty
    double kept_weight = 1;                    ///< 1 / (1 - p)

    Conventions asked;  ///< the question's own
};

/// `plan`, `operands` and `result` are those of the question in float64, the operands complete and
/// the result with dropout_mask where there is dropout.
Problem make_problem(const Plan& plan, const Operands& operands, const Result& result);

}  // namespace attn
