// A question with its numbers in float64, as the search and the error bounds compute it.
#pragma once

#include <algorithm>
#include <span>

#include "core/base/thread_pool.hpp"
#include "core/check/conventions.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/operands.hpp"
#include "core/layer/result.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// Rows of numbers and, where they were asked for, bounds on their errors: else these are 0, or
/// none.
struct Numbers {
    std::size_t rows = 0, columns = 0;
    std::vector<double> value;
    std::vector<double> error;       ///< of numbers that are too large
    std::vector<double> below = {};  ///< of those too small; empty: the same

    double below_at(std::size_t i) const { return below.empty() ? error[i] : below[i]; }
    /// Of another program's number.
    double bound(std::size_t i, double theirs) const {
        return theirs < value[i] ? below_at(i) : error[i];
    }
    /// In either direction.
    double bound(std::size_t i) const { return std::max(error[i], below_at(i)); }
};

/// A weight as nn.Linear stores it, (d_out, d_in), and its bias, or no numbers. Those of
/// independent heads are one below the other.
struct ProjectionNumbers {
    std::size_t d_out = 0, d_in = 0;
    std::size_t groups = 1;  ///< independent heads
    bool in_out = false;     ///< the question stores it as (d_in, d_out)
    std::vector<double> weight, bias;
};

/// How the heads of a source that is not projected lie in memory.
enum class HeadsIn {
    columns,  ///< (batch, tokens, heads * d)
    axis,     ///< (batch, heads, tokens, d)
    copies,   ///< (batch, tokens, d): every head has all of it
};

/// What is computed, with nothing left to decide but the conventions. Without projections, the
/// sources of queries, keys and values are the operands.
struct Problem {
    Plan plan;       ///< of the question; its type does not count
    Numbers inputs;  ///< (batch * tokens, d_in), before the norm; or empty
    /// (batch * tokens, columns), after the norm of inputs; heads side by side, also where they are
    /// an axis in memory.
    std::array<Numbers, 3> source;  ///< of queries, keys and values
    HeadsIn heads_in = HeadsIn::columns;
    PerTensor<std::optional<ProjectionNumbers>> projection;
    std::optional<InputNorm> input_norm, query_norm, key_norm;
    ByOperand<std::optional<OperandNumbers>> operands;  ///< caches, gates and masks
    std::vector<double> dropout_kept;  ///< 0 and 1, (batch, heads, rows, kv_len); or empty
    double kept_weight = 1;            ///< 1 / (1 - p)
    /// How the other --qkv-layout splits the tensor of the weights; empty: it is determined, or
    /// there is no such tensor.
    std::optional<HeadSplit> other_layout;

    Conventions asked;  ///< the question's own

    /// Empty where the operand is absent.
    std::span<const double> numbers(OperandId operand) const {
        return operands[operand] ? operands[operand]->values : std::span<const double>();
    }
    /// The mask of `mask_operands`, if it is given.
    const std::optional<OperandNumbers>& mask(std::size_t which) const {
        return operands[*mask_operands[which]];
    }
    std::size_t head_count(Tensor tensor) const {
        return tensor == Tensor::query ? plan.heads : plan.kv_heads;
    }
    /// New ones, of each batch entry.
    std::size_t tokens(Tensor tensor) const {
        return source[index_of(tensor)].rows / std::max<std::size_t>(plan.batch, 1);
    }
    /// Whether the sizes of the tensors that the conventions use fit together.
    bool fits(const Conventions& conventions) const;
};

/// Whether the mask of `mask_operands` is given as a boolean one, or an additive one.
inline bool has_mask(const Problem& problem, std::size_t which, bool is_boolean) {
    return problem.mask(which) && problem.mask(which)->is_boolean == is_boolean;
}

/// `operands` are those that the plan was made for, complete: they are rounded to its type first.
/// `result` is the plan's, of which the weights are taken and, where there is dropout, the array
/// dropout_mask, which it must have.
Problem make_problem(const Plan& plan, const Operands& operands, const Result& result);

/// The problem of a question: the same inputs, rounded to its type, the same parameters, drawn in
/// its type if they are drawn, and the same dropout mask. The question's arrays without rounding
/// are the rows of a Candidate with `asked`. The plan must be made for the operands.
Problem exact_question(const Plan& plan, const Operands& operands, ThreadPool& pool);

// Which of a computation's conventions have an effect.

/// Whether the conventions exclude keys; additive masks are read for -infinity.
bool excludes_keys(const Problem& problem, const Conventions& c);

/// Moves the stages of scores that do nothing to the end of their order, sorted. Returns how many
/// do something.
std::size_t move_idle_stages(Conventions& c, bool excludes);

/// The conventions with those reset that the array does not depend on. They are equal only if the
/// array's numbers are, which may be equal for different ones.
Conventions relevant_conventions(const Problem& problem, Conventions conventions, ArrayId array);

}  // namespace attn
