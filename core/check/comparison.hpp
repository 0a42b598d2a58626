// How well a computation under some conventions reproduces another program's arrays: by bounds, and
// by the errors that are expected of a right program; and which conventions reproduce them: single
// changes first, then pairs, then triples.
#pragma once

#include "core/check/departures.hpp"
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
    std::size_t first;  ///< the index of its first number
};

/// The arrays, the errors that the question's own conventions leave, and the rows by which others
/// are judged first.
class Comparison {
public:
    /// `problem` must outlive it.
    Comparison(const Problem& problem, std::vector<TheirArray> arrays, ThreadPool& pool);

    const Problem& problem() const { return problem_; }
    const std::vector<TheirArray>& arrays() const { return arrays_; }
    const Evaluator& evaluator(NumberType type) const { return evaluators_.at(type); }
    const TheirArray& array(const TheirRow& row) const { return arrays_[row.array]; }

    std::size_t rows(std::size_t array) const {
        return arrays_[array].shape[0] * arrays_[array].shape[1] * arrays_[array].shape[2];
    }
    /// The row of this index among all.
    TheirRow row_at(std::size_t array, std::size_t index) const {
        const auto& [batch, heads, rows, columns] = arrays_[array].shape;
        return {array, index / rows / heads, index / rows % heads, index % rows, index * columns};
    }
    std::span<const double> numbers(const TheirRow& row) const {
        return {array(row).values.data() + row.first, array(row).shape[3]};
    }

    /// Whether some array is a gradient that takes a whole backward pass.
    bool sums_over_queries() const;
    /// Whether the question's own conventions reproduce the arrays.
    bool is_right() const { return is_right_; }
    /// Under the question's own conventions.
    struct Asked {
        double error = 0, bound = HUGE_VAL;
    };
    /// Of the numbers of a row, as by default if they are not finite; null if all of the array are
    /// within their bounds.
    const Asked* asked(const TheirRow& row) const {
        return asked_[row.array].empty() ? nullptr : &asked_[row.array][row.first];
    }

    /// For each array, in the order of computation, the row with the largest error, and two that
    /// are unlike it.
    const std::vector<TheirRow>& probes() const { return probes_; }

private:
    const Problem& problem_;
    std::vector<TheirArray> arrays_;
    std::map<NumberType, Evaluator> evaluators_;
    bool is_right_ = true;
    std::vector<std::vector<Asked>> asked_;
    std::vector<TheirRow> probes_;
};

/// Computes rows under some conventions, as far as they are needed. For one thread.
class Reproduction {
public:
    Reproduction(const Comparison& comparison, Conventions conventions)
        : comparison_(comparison), conventions_(std::move(conventions)) {}

    const Numbers& computed(const TheirRow& row, bool with_errors);

    /// Ends at the first number that is outside its bound, if `stops`. `errors`: where to put those
    /// of numbers that are finite on both sides; null: nowhere.
    Fit compare(const TheirRow& row, bool stops, Comparison::Asked* errors = nullptr);

    /// Whether a number is so far off that no bound would hold it, without computing bounds: that
    /// takes a fraction of the time.
    bool is_far_off(const TheirRow& row);

private:
    const Comparison& comparison_;
    Conventions conventions_;
    std::map<std::pair<NumberType, bool>, Candidate> candidates_;
};

/// Of the scale, the rotary base and the soft cap, where the question has them and the arrays have
/// enough numbers that depend on them: the one that lets the question come nearest to the arrays,
/// if nothing else differs. First the shortest decimal within its uncertainty, then the number
/// itself. Whether they reproduce the arrays is not known.
std::vector<Alternative> fitted_numbers(const Comparison& comparison, const Conventions& from);

/// The one decision of dropout that brings the question nearest to the row that departs most.
/// Whether it reproduces the arrays is not known.
std::optional<Alternative> flipped_decision(const Comparison& comparison);

/// The question with the dropout mask that their attention_weights show, weights that are 0 while
/// the question's are not, and with the factor of the others. Nothing if there are none, if the
/// question has dropout itself, or if the array does not hold all weights.
std::optional<Problem> with_seen_dropout(const Problem& problem,
                                         const std::vector<TheirArray>& arrays);

/// Their weights with a softmax, where they are given or follow from their outputs.
std::optional<SeenWeights> seen_weights(const Problem& problem,
                                        const std::vector<TheirArray>& arrays);

/// The errors of an array as multiples of those expected.
struct NoiseFit {
    bool fits = true;
    bool is_known = true;     ///< of some rows
    double all = 0;           ///< the root of the mean of e^2 / V, the variance
    double most = 0;          ///< the same of the head, or the size of the element, that fits worst
    bool is_element = false;  ///< it is of an element
    /// In their array: the first element that does not fit, or else the one with the largest error
    /// relative to its standard deviation.
    std::size_t at = 0;
    double theirs = 0, truth = 0;  ///< there
};

/// Under the question's own conventions, with operands rounded to the type first if that fits
/// better. Empty: the array has no noise.
std::optional<NoiseFit> noise_of_question(const Evaluator& evaluator, const GivenArray& given,
                                          const Layout& layout, ThreadPool& pool);

/// Whether errors under some conventions are within those expected, in arrays that have
/// noise.
class ArraysNoise {
public:
    /// `comparison` must outlive it.
    explicit ArraysNoise(const Comparison& comparison);

    bool fits(const Conventions& conventions, ThreadPool& pool) const;
    /// Of one row, for one thread.
    bool fits(const Conventions& conventions, const TheirRow& row) const;

private:
    const Comparison& comparison_;
    std::vector<GivenArray> given_;  ///< in attn's layout
    std::vector<Layout> layouts_;
};

/// The root of the mean square of what rounding the factors of products to the evaluator's type
/// does to an array, over at most 64 rows of each head.
double error_of_rounded_factors(const Evaluator& evaluator, ArrayId array);

/// One convention that differs from the question's.
struct Change {
    const ConventionRow* convention;
    std::string asked, found;  ///< "keep", "drop"
    std::string flag;          ///< "--mask-true drop"; empty: attn has none
};

/// Changes that together reproduce every array to rounding.
struct Match {
    std::vector<Change> changes;
    double ulp = 0;  ///< the largest error, in units in the last place of the arrays' type
};

struct SearchOptions {
    std::size_t max_changes = 3;
    /// Called by one thread at a time: how many candidates of how many of this size are done.
    std::function<void(std::size_t changes, std::size_t done, std::size_t of)> progress;
};

/// All matches with the smallest number of changes, best first: the data cannot tell them apart.
/// Empty: none. The arrays are not empty, and `Evaluator::has` each.
std::vector<Match> search_conventions(const Problem& problem, const std::vector<TheirArray>& arrays,
                                      const SearchOptions& options, ThreadPool& pool);

/// About what it keeps in memory besides the problem, for arrays of so many types.
double bytes_of_search(const Plan& plan, std::size_t types, std::size_t threads);

}  // namespace attn
