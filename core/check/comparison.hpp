// How well a computation under some conventions reproduces another program's arrays.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/check/evaluate.hpp"
#include "core/check/their_array.hpp"

namespace attn {

/// The errors of some numbers.
struct Fit {
    double bound = 0;    ///< the largest error as a multiple of its bound
    double squares = 0;  ///< the sum of the squares of these multiples
    double ulp = 0;  ///< the largest error in units in the last place of its row's largest number
    std::size_t numbers = 0;

    void add(const Fit& other);
    double root_mean_square() const;
};

/// One row of one of their arrays, of shape (batch, heads, rows, columns).
struct TheirRow {
    std::size_t array, batch, head, row;
};

/// Computes rows under some conventions, as far as they are needed. For one thread.
class Reproduction {
public:
    using Evaluators = std::map<Precision, std::unique_ptr<Evaluator>>;

    Reproduction(const Evaluators& evaluators, const std::vector<TheirArray>& arrays,
                 Conventions conventions);

    /// Ends at the first number that is outside its bound, if `stops`.
    Fit compare(const TheirRow& row, bool stops);

private:
    Candidate& candidate(Precision type);
    void take_mean(const TheirRow& row);
    void take(const TheirRow& row, std::size_t head);

    const Evaluators& evaluators_;
    const std::vector<TheirArray>& arrays_;
    Conventions conventions_;
    std::map<Precision, std::unique_ptr<Candidate>> candidates_;
    std::vector<double> value_, error_;
};

/// The arrays, and the rows by which candidates are judged first.
class Comparison {
public:
    /// `problem` must outlive it.
    Comparison(const Problem& problem, std::vector<TheirArray> arrays);

    const Problem& problem() const { return problem_; }
    const std::vector<TheirArray>& arrays() const { return arrays_; }

    /// Whether the sizes of the question's tensors allow these conventions.
    bool allows(const Conventions& conventions) const;

    /// Each row of the conventions is compared; errors are not ends.
    Fit compare_all(const Conventions& conventions, ThreadPool& pool) const;

    /// A row by which conventions are rejected fast, and others that are unlike it, of every
    /// array, in the order of computation. `asked` were found to be wrong.
    std::vector<TheirRow> probes(const Conventions& asked, ThreadPool& pool) const;

    Reproduction reproduction(const Conventions& conventions) const {
        return {evaluators_, arrays_, conventions};
    }

private:
    /// Rows of one head, in the order of the arrays.
    std::vector<TheirRow> parts() const;

    const Problem& problem_;
    std::vector<TheirArray> arrays_;
    Reproduction::Evaluators evaluators_;
};

}  // namespace attn
