// Attention in float64 under any conventions, row by row, with bounds on the errors of arithmetic
// in another type. Independent of core/operator, core/fused and core/linear.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "core/check/problem.hpp"
#include "core/operator/arrays.hpp"

namespace attn {

namespace check_detail {
class Shared;
class State;
}  // namespace check_detail

/// The rounding error of a sum of n products is bounded by gamma(n) = exp(lambda sqrt(n) u + n u^2
/// / (1 - u)) - 1 times the sum of their sizes, with a probability of at least 1 - 2 exp(-lambda^2
/// (1 - u)^2 / 2): Higham and Mary 2019, "A new approach to probabilistic rounding error analysis",
/// theorem 2.4; n u / (1 - n u) where that is smaller. Where products have both signs the partial
/// sums are smaller, and so are the errors: Higham and Mary 2020, "Sharper probabilistic backward
/// error analysis for basic linear algebra kernels with random data". Errors of factors that are
/// independent add up as the root of their squares.
inline constexpr double lambda = 6;

/// Prepares what candidates have in common and keeps it: projected tensors, rotated tensors.
/// Threads may share it. `problem` must outlive it.
class Evaluator {
public:
    Evaluator(const Problem& problem, Precision arithmetic);
    ~Evaluator();

    /// Whether rows of this array can be computed: of all that settings can name, but token ids.
    static bool has(ArrayId array);
    /// Whether the sizes of the tensors that the conventions use fit together.
    bool fits(const Conventions& conventions) const;

    const Problem& problem() const;
    Precision arithmetic() const;

private:
    friend class Candidate;
    std::unique_ptr<check_detail::Shared> shared_;
};

/// (batch, heads, rows, columns) of an array of the question as Candidate::row counts them: all
/// heads, whichever are chosen; the columns of `states` are d_k * d_v; a weight that is stored as
/// (d_in, d_out) has rows of d_out.
std::array<std::size_t, 4> extent_of(const Plan& plan, ArrayId array);

/// A computation under some conventions, lazily. For one thread. The evaluator must outlive it.
class Candidate {
public:
    /// The conventions must fit the evaluator's problem.
    Candidate(const Evaluator& evaluator, Conventions conventions, bool with_errors);
    ~Candidate();

    const Conventions& conventions() const;

    /// One row of an array whose full shape is (batch, heads, rows, columns), the row counted from
    /// plan.first_query for axes of queries; axes that the array does not have are indexed by 0.
    /// `error` bounds the difference of two programs' values: this one's in float64, and another's
    /// in the evaluator's arithmetic, rounded to that type. Valid until the next call. Only what
    /// the row depends on is computed.
    const Numbers& row(ArrayId array, std::size_t batch, std::size_t head, std::size_t row);

private:
    std::unique_ptr<check_detail::State> state_;
};

}  // namespace attn
