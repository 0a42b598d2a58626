// Whether another program's arrays are right: their errors as multiples of what rounding makes.
#pragma once

#include "core/base/function_ref.hpp"
#include "core/check/evaluate.hpp"
#include "core/check/their_array.hpp"

namespace attn {

enum class Verdict {
    right,              ///< within the bound of float64, or the tolerance that was given
    right_within_type,  ///< within the bound of its own type
    wrong
};
inline constexpr Names<Verdict, 3> verdict_names{
    {{Verdict::right, "right"},
     {Verdict::right_within_type, "right within its type"},
     {Verdict::wrong, "wrong"}}};

/// What the errors of a right array fit.
enum class Arithmetic { exact, rounded_once, rounded_at_every_step };
inline constexpr Names<Arithmetic, 3> arithmetic_names{
    {{Arithmetic::exact, "exact"},
     {Arithmetic::rounded_once, "rounded once"},
     {Arithmetic::rounded_at_every_step, "rounded at every step"}}};

/// In place of the bounds: |error| <= atol + rtol |truth|. Of words, of the numbers before they
/// were rounded to words.
struct CheckTolerance {
    double atol = 0, rtol = 0;
};

/// What is right: within the bounds, or the tolerance if there is one. So many units in the last
/// place more are right in words.
struct CheckLimits {
    std::optional<CheckTolerance> tolerance = {};
    std::optional<std::uint64_t> units = {};

    bool are_given() const { return tolerance || units; }
};

/// An element of another program's array, and what is expected there.
struct JudgedElement {
    std::size_t offset;  ///< in theirs
    double theirs, truth, bound;
    bool is_right;
    bool is_nearest;  ///< theirs is the number of the type that is nearest to the truth
};

/// An element that is not within its bound.
struct Departure {
    std::vector<std::size_t> index;  ///< in the array as the other program has it
    double theirs = 0, truth = 0;
};

/// Where an array is wrong, in the axes of the other program.
struct WrongElements {
    struct Side {
        std::string axis;  ///< empty: of size 1
        std::size_t first, last, size;
    };
    std::size_t count = 0, of = 0;
    std::vector<Side> box;           ///< the smallest that holds all of them
    std::size_t zeros = 0, nan = 0;  ///< of the wrong ones
    /// The number that most of several are, and how many, or 0: they were never written, or filled.
    double common = 0;
    std::size_t alike = 0;
    std::optional<Departure> largest = {};  ///< among those that are finite on both sides
};

struct ArrayJudgement {
    ArrayId id;
    Verdict verdict = Verdict::wrong;
    NumberType type = NumberType::float32;  ///< whose bound was used
    std::vector<std::string> axes = {};     ///< of theirs in order, where they are not attn's
    /// Over the elements that are finite on both sides.
    double max_abs = 0, rms = 0;
    std::size_t unlike = 0;               ///< elements that are finite on one side alone
    std::size_t differ = 0;               ///< words that are not those of the truth
    double ulp = 0;                       ///< of the type, at the largest error
    double bound = 0;                     ///< the largest error as a multiple of its bound
    std::optional<Departure> first = {};  ///< in their order; empty: none, or no shape fits
    /// Empty: it is wrong, or judged by a tolerance, or holds keys.
    std::optional<Arithmetic> arithmetic = {};
    /// The root mean square error as a multiple of that expected; empty: its bound alone judges.
    std::optional<double> noise = {};
    std::string finding = {};           ///< "constant", "NaN where ..."; or empty
    std::optional<Layout> layout = {};  ///< empty: no shape fits, and all numbers above are 0
    /// It is wrong, but would be right with rows and columns exchanged.
    bool is_right_if_transposed = false;
    std::optional<WrongElements> wrong = {};  ///< of `judge` and `locate`
};

/// Judges arrays in the order of computation: an array is expected to be no better than the type
/// of one before it.
class Judge {
public:
    /// `problem` must outlive it.
    Judge(const Problem& problem, const CheckLimits& limits, ThreadPool& pool);

    ArrayJudgement judge(const GivenArray& given);
    /// By this layout and type.
    ArrayJudgement judge_as(const GivenArray& given, const Layout& layout, NumberType type);
    /// Of a wrong array whose shape fits, sets `wrong`.
    void locate(ArrayJudgement& judgement, const GivenArray& given);

    /// See error_of_rounded_factors.
    double error_of_factors(ArrayId array, NumberType type);

    /// Forgets the types of earlier arrays, for those of another program.
    void begin_program() { coarsest_ = NumberType::float64; }

    /// Forgets what arrays have in common, the operands and projections in each type.
    void free_memory();

private:
    struct Tally;

    ArrayJudgement best_layout(const GivenArray& given, const std::vector<Layout>& layouts,
                               NumberType type);
    /// The elements of an item, (batch, row), are passed on by one thread.
    void visit(const GivenArray& given, const Layout& layout, NumberType type,
               FunctionRef<void(std::size_t item, const JudgedElement&)> take);
    std::size_t items(ArrayId array) const;
    /// Empty: an array of other numbers.
    std::optional<RightWords> right_words(const GivenArray& given) const;
    /// The smaller type that the numbers were evidently rounded to, if there is one. `loosely`:
    /// also where many are wrong: enough to find these, too little to call the array right.
    std::optional<NumberType> evident_type(const GivenArray& given,
                                           const std::vector<Layout>& layouts, bool loosely);
    bool is_rounded_to(NumberType type, const GivenArray& given, const Layout& layout,
                       bool loosely);
    Tally tally(const GivenArray& given, const Layout& layout, NumberType type);
    bool is_exact(const GivenArray& given, const Layout& layout, NumberType type,
                  const Tally& found);
    void judge_noise(ArrayJudgement& judgement, const GivenArray& given, const Layout& layout);
    const Evaluator& evaluator(NumberType type);

    const Problem& problem_;
    CheckLimits limits_;
    ThreadPool& pool_;
    std::map<NumberType, Evaluator> evaluators_;
    NumberType coarsest_ = NumberType::float64;
};

}  // namespace attn
