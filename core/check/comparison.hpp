// How well a computation under some conventions reproduces another program's arrays.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/check/evaluate.hpp"
#include "core/check/their_array.hpp"

namespace attn {

/// The errors of some numbers.
struct Fit {
    double bound = 0;    ///< the largest error as a multiple of its bound
    double squares = 0;  ///< the sum of the squares of these multiples
    /// Of numbers that the question's own conventions leave outside their bounds, and of the
    /// others: how many there are, and how many have no clearly smaller error here, or one beyond
    /// those bounds.
    std::size_t outside = 0, inside = 0, as_far_outside = 0, no_longer_inside = 0;
    double part = 0;  ///< the largest error as a part of its row's largest number
    double ulp = 0;   ///< the largest error in units in the last place of its row's largest number
    std::size_t numbers = 0;

    void add(const Fit& other);
    double root_mean_square() const;
};

/// One row of one of their arrays, of shape (batch, heads, rows, columns).
struct TheirRow {
    std::size_t array, batch, head, row;
};

class Comparison;

/// Computes rows under some conventions, as far as they are needed. For one thread.
class Reproduction {
public:
    Reproduction(const Comparison& comparison, Conventions conventions)
        : comparison_(comparison), conventions_(std::move(conventions)) {}

    /// Ends at the first number that is outside its bound, if `stops`.
    Fit compare(const TheirRow& row, bool stops);

    /// Whether a number is so far off that no bound would hold it, without computing bounds: that
    /// takes a fraction of the time.
    bool is_far_off(const TheirRow& row);

private:
    friend class Comparison;
    template <class Use>
    Fit compare(const TheirRow& row, bool stops, const Use& use);
    Candidate& candidate(Precision type);
    const Numbers& computed_row(Candidate& by, const TheirRow& row) const;

    const Comparison& comparison_;
    Conventions conventions_;
    std::map<Precision, std::unique_ptr<Candidate>> candidates_;
    std::unique_ptr<Candidate> without_errors_;
};

/// The arrays, the errors that the question's own conventions leave, and the rows by which others
/// are judged first.
class Comparison {
public:
    /// `problem` must outlive it.
    Comparison(const Problem& problem, std::vector<TheirArray> arrays, ThreadPool& pool);

    const Problem& problem() const { return problem_; }
    const std::vector<TheirArray>& arrays() const { return arrays_; }
    const Evaluator& evaluator(Precision type) const { return *evaluators_.at(type); }

    /// Whether the question's own conventions reproduce the arrays.
    bool is_right() const { return is_right_; }
    /// Under the question's own conventions.
    struct Asked {
        double error = 0, bound = std::numeric_limits<double>::infinity();
    };
    /// Of a number, as by default if it is not finite; null if all of the array are within their
    /// bounds.
    const Asked* asked(std::size_t array, std::size_t number) const {
        return asked_[array].empty() ? nullptr : &asked_[array][number];
    }

    /// For each array, in the order of computation, the row with the largest error, and two that
    /// are unlike it.
    const std::vector<TheirRow>& probes() const { return probes_; }

    /// Whether the sizes of the question's tensors allow these conventions.
    bool allows(const Conventions& conventions) const;

private:
    const Problem& problem_;
    std::vector<TheirArray> arrays_;
    std::map<Precision, std::unique_ptr<Evaluator>> evaluators_;
    bool is_right_ = true;
    std::vector<std::vector<Asked>> asked_;
    std::vector<TheirRow> probes_;
};

}  // namespace attn
