#include "core/check/judge.hpp"

#include <iomanip>
#include <limits>
#include <sstream>

#include "core/base/tensor.hpp"
#include "core/check/comparison.hpp"

namespace attn {
namespace {

constexpr std::size_t no_offset = std::numeric_limits<std::size_t>::max();

}  // namespace

/// What is known of some elements of an array.
struct Judge::Tally {
    struct Element {
        double theirs = 0, truth = 0;
    };
    struct Range {
        double smallest = HUGE_VAL, largest = -HUGE_VAL;

        void add(const Range& other) {
            smallest = std::min(smallest, other.smallest);
            largest = std::max(largest, other.largest);
        }
    };

    std::size_t count = 0, finite = 0;
    double max_abs = 0, sum_of_squares = 0, bound = 0;
    Element at_max;
    std::size_t first = no_offset;  // the smallest offset in theirs of an element out of its bound
    Element at_first;
    std::size_t nan = 0, infinite = 0;  // in theirs alone
    std::size_t unlike = 0;             // finite in one of the two alone
    std::size_t zeros = 0, differ = 0;
    bool is_rounded_once = true;  // each is the nearest number of the type
    Range theirs, truth;

    static Tally of(const JudgedElement& element) {
        const Element x{element.theirs, element.truth};
        Tally one;
        one.count = 1;
        one.is_rounded_once = element.is_nearest;
        one.zeros = x.theirs == 0 ? 1 : 0;
        one.differ = x.theirs == x.truth ? 0 : 1;
        one.nan = std::isnan(x.theirs) && !std::isnan(x.truth) ? 1 : 0;
        one.infinite = std::isinf(x.theirs) && !std::isinf(x.truth) ? 1 : 0;
        one.unlike = std::isfinite(x.theirs) != std::isfinite(x.truth) ? 1 : 0;
        one.theirs = {x.theirs, x.theirs};
        one.truth = {x.truth, x.truth};
        one.at_first = one.at_max = x;
        if (!element.is_right) one.first = element.offset;
        if (!std::isfinite(x.theirs) || !std::isfinite(x.truth)) return one;
        one.finite = 1;
        one.max_abs = std::abs(x.theirs - x.truth);
        one.sum_of_squares = one.max_abs * one.max_abs;
        if (one.max_abs > 0)
            one.bound = element.bound == 0 ? HUGE_VAL : one.max_abs / element.bound;
        return one;
    }

    void add(const Tally& other) {
        count += other.count;
        zeros += other.zeros;
        differ += other.differ;
        is_rounded_once = is_rounded_once && other.is_rounded_once;
        nan += other.nan;
        infinite += other.infinite;
        unlike += other.unlike;
        theirs.add(other.theirs);
        truth.add(other.truth);
        if (other.first < first) {
            first = other.first;
            at_first = other.at_first;
        }
        sum_of_squares += other.sum_of_squares;
        bound = std::max(bound, other.bound);
        if (other.finite > 0 && (finite == 0 || other.max_abs > max_abs)) {
            max_abs = other.max_abs;
            at_max = other.at_max;
        }
        finite += other.finite;
    }
};

namespace {

bool is_within(double theirs, double truth, double bound) {
    if (theirs == truth || (std::isnan(theirs) && std::isnan(truth))) return true;
    if (!std::isfinite(truth) || std::isnan(theirs)) return false;
    // An infinite bound is of numbers that overflow in the type.
    return std::isinf(theirs) ? std::isinf(bound) : std::abs(theirs - truth) <= bound;
}

/// How far a number of the type that is nearest to another program's is from the truth, if that
/// program computes in float32 or better.
class NearestNumber {
public:
    NearestNumber(NumberType type, const std::vector<double>& row) : type_(row_of(type)) {
        constexpr double of_float32 = 0x1p-18;
        if (type_.unit <= row_of(NumberType::float32).unit) return;
        for (const double x : row)
            if (std::isfinite(x)) of_row_ = std::max(of_row_, of_float32 * std::abs(x));
    }
    double at(double truth) const {
        constexpr double of_ties = 1 + 0x1p-5;
        return of_ties * half_unit(type_, truth) + of_row_;
    }

private:
    const NumberTypeRow& type_;
    double of_row_ = 0;
};

/// A key is right if it is the expected one, or if its weight is as large to rounding.
bool is_right_key(double theirs, double truth, const Numbers& weights) {
    const auto is_key = [&](double x) {
        return x >= 0 && x < static_cast<double>(weights.value.size()) && x == std::trunc(x);
    };
    if (theirs == truth || !is_key(theirs) || !is_key(truth)) return theirs == truth;
    const auto a = static_cast<std::size_t>(theirs), b = static_cast<std::size_t>(truth);
    return std::abs(weights.value[a] - weights.value[b]) <= weights.error[a] + weights.error[b];
}

}  // namespace

Judge::Judge(const Problem& problem, const CheckLimits& limits, ThreadPool& pool)
    : problem_(problem), limits_(limits), pool_(pool) {}

void Judge::free_memory() {
    evaluators_.clear();
}

const Evaluator& Judge::evaluator(NumberType type) {
    return evaluators_.try_emplace(type, problem_, type).first->second;
}

std::size_t Judge::items(ArrayId array) const {
    const std::array<std::size_t, 4> shape = shape_of_all_axes(problem_.plan, array);
    return shape[0] * shape[2];
}

/// Rows of all heads of a query are neighbours: candidates keep what these have in common.
void Judge::visit(const GivenArray& given, const Layout& layout, NumberType type,
                  FunctionRef<void(std::size_t item, const JudgedElement&)> take) {
    const auto [batch, heads, rows, columns] = shape_of_all_axes(problem_.plan, given.id);
    const std::vector<std::size_t>* const chosen = problem_.plan.shown.chosen(given.id);
    const Evaluator& shared = evaluator(type);
    std::vector<std::optional<Candidate>> of_worker(pool_.threads());
    const std::optional<RightWords> words = right_words(given);
    const auto compare = [&](Candidate& candidate, const std::array<std::size_t, 3>& at,
                             std::size_t item) {
        const std::size_t head = chosen == nullptr ? at[1] : (*chosen)[at[1]];
        const Numbers numbers = candidate.row(given.id, at[0], head, at[2]);
        const Numbers* const weights =
            holds_keys(given.id) ? &candidate.row("weights_before_dropout", at[0], head, at[2])
                                 : nullptr;
        const NearestNumber nearest(type, numbers.value);
        std::set<double> keys;
        for (std::size_t c = 0; c < numbers.value.size(); ++c) {
            const std::size_t offset = layout.offset({at[0], at[1], at[2], c});
            const double theirs = given.values[offset], truth = numbers.value[c];
            if (weights != nullptr) {
                const bool is_right = is_right_key(theirs, truth, *weights) &&
                                      (theirs < 0 || keys.insert(theirs).second);
                take(item, {offset, is_right ? truth : theirs, truth, 0, is_right, is_right});
                continue;
            }
            const auto& tolerance = limits_.tolerance;
            const double bound = tolerance ? tolerance->atol + tolerance->rtol * std::abs(truth)
                                           : numbers.bound(c, theirs) +
                                                 (given.printed ? given.printed->error(truth) : 0);
            if (words) {
                const double expected = stored_number(truth, *given.words);
                const bool is_right = words->hold(theirs, truth, bound);
                take(item, {offset, theirs, expected, is_right ? std::abs(theirs - expected) : 0,
                            is_right, theirs == expected});
                continue;
            }
            // Of what is not finite, this says nothing.
            const bool is_nearest = !(std::abs(theirs - truth) > nearest.at(truth));
            take(item, {offset, theirs, truth, bound, is_within(theirs, truth, bound), is_nearest});
        }
    };
    pool_.run(batch * rows, [&, heads = heads, rows = rows](std::size_t item, std::size_t worker) {
        std::optional<Candidate>& candidate = of_worker[worker];
        if (!candidate) candidate.emplace(shared, problem_.asked, true);
        for (std::size_t head = 0; head < heads; ++head)
            compare(*candidate, {item / rows, head, item % rows}, item);
    });
}

Judge::Tally Judge::tally(const GivenArray& given, const Layout& layout, NumberType type) {
    std::vector<Tally> tallies(items(given.id));
    visit(given, layout, type, [&](std::size_t item, const JudgedElement& element) {
        tallies[item].add(Tally::of(element));
    });
    Tally all;
    for (const Tally& tally : tallies) all.add(tally);
    return all;
}

std::optional<RightWords> Judge::right_words(const GivenArray& given) const {
    if (!given.words) return std::nullopt;
    return RightWords(*given.words, static_cast<double>(limits_.units.value_or(0)));
}

/// Whether a right array is within the bound of float64 too, or the limits that were given.
bool Judge::is_exact(const GivenArray& given, const Layout& layout, NumberType type,
                     const Tally& found) {
    if (limits_.are_given()) return true;
    if (type == NumberType::float64 || given.words) return !given.words;
    if (found.unlike != 0) return false;  // it overflowed
    if (found.max_abs == 0) return true;
    // As of sums that are 0.5 in one order and the number before it in another.
    constexpr double small = 0x1p-40;
    const double most = std::max(std::abs(found.truth.smallest), std::abs(found.truth.largest));
    return found.max_abs <= small * most &&
           tally(given, layout, NumberType::float64).first == no_offset;
}

ArrayJudgement Judge::judge_as(const GivenArray& given, const Layout& layout, NumberType type) {
    const Tally found = tally(given, layout, type);
    ArrayJudgement judgement{.id = given.id, .type = type};
    judgement.axes = layout.axes;
    judgement.layout = layout;
    judgement.max_abs = found.max_abs;
    judgement.rms =
        found.finite == 0 ? 0 : std::sqrt(found.sum_of_squares / static_cast<double>(found.finite));
    const RightWords units = right_words(given).value_or(RightWords({.kind = type}, 0));
    judgement.ulp =
        found.max_abs == 0 ? 0 : units.units_between(found.at_max.theirs, found.at_max.truth);
    judgement.bound = found.bound;
    const bool is_right = found.first == no_offset;
    if (!is_right)
        judgement.first = Departure{index_of(found.first, given.shape), found.at_first.theirs,
                                    found.at_first.truth};
    judgement.verdict = !is_right                              ? Verdict::wrong
                        : is_exact(given, layout, type, found) ? Verdict::right
                                                               : Verdict::right_within_type;
    if (given.words) judgement.differ = found.differ;
    if (judgement.verdict == Verdict::right_within_type && !given.words)
        judge_noise(judgement, given, layout);
    if (judgement.verdict != Verdict::wrong && !limits_.are_given() && !holds_keys(given.id))
        judgement.arithmetic = judgement.verdict == Verdict::right ? Arithmetic::exact
                               : found.is_rounded_once || given.words
                                   ? Arithmetic::rounded_once
                                   : Arithmetic::rounded_at_every_step;
    const bool is_flat = found.theirs.smallest == found.theirs.largest && found.count > 1 &&
                         found.truth.smallest != found.truth.largest && found.nan == 0;
    if (is_right) return judgement;
    judgement.unlike = found.unlike;
    if (found.nan != 0)
        judgement.finding =
            concat("NaN where the truth has none: ", found.nan, " of ", found.count, " elements");
    else if (found.infinite != 0)
        judgement.finding = concat("infinite where the truth is finite: ", found.infinite, " of ",
                                   found.count, " elements");
    else if (is_flat && found.zeros == found.count)
        judgement.finding = "all zero";
    else if (is_flat)
        judgement.finding = "constant: every element is the same";
    return judgement;
}

/// An array that is within its bounds is wrong if its errors are larger than those expected.
void Judge::judge_noise(ArrayJudgement& judgement, const GivenArray& given, const Layout& layout) {
    const auto fit = noise_of_question(evaluator(judgement.type), given, layout, pool_);
    if (!fit) return;
    if (fit->is_known) judgement.noise = fit->all;
    if (fit->fits) return;
    judgement.verdict = Verdict::wrong;
    judgement.first = Departure{index_of(fit->at, given.shape), fit->theirs, fit->truth};
    std::ostringstream times;
    times << std::setprecision(2) << (fit->is_element ? fit->most : std::max(fit->all, fit->most));
    judgement.finding = concat("within the worst case of ", row_of(judgement.type).name, ", but ",
                               fit->is_element ? "one error is " : "its errors are ", times.str(),
                               " times the expected noise");
}

double Judge::error_of_factors(ArrayId array, NumberType type) {
    return error_of_rounded_factors(evaluator(type), array);
}

/// attn's own order of axes, or else one that ends with columns, unless it does not fit, or another
/// one is right or far nearer.
ArrayJudgement Judge::best_layout(const GivenArray& given, const std::vector<Layout>& layouts,
                                  NumberType type) {
    const auto judged = [&](const Layout& layout) {
        ArrayJudgement judgement = judge_as(given, layout, type);
        if (!layout.is_transposed || judgement.verdict == Verdict::wrong) return judgement;
        judgement.verdict = Verdict::wrong;
        judgement.is_right_if_transposed = true;
        judgement.finding =
            concat("right if transposed: its axes are ", axes_text(layout.axes), ", those of attn ",
                   axes_text(own_axes(problem_.plan, given.id)));
        return judgement;
    };
    ArrayJudgement best = judged(layouts.front());
    constexpr double far = 0.01;
    for (std::size_t i = 1;
         i < layouts.size() && best.verdict == Verdict::wrong && !best.is_right_if_transposed;
         ++i) {
        ArrayJudgement other = judged(layouts[i]);
        if (other.is_right_if_transposed && !best.layout->is_transposed) {
            // Its numbers are those of the order that it was expected in.
            best.is_right_if_transposed = true;
            best.finding = std::move(other.finding);
            continue;
        }
        const bool is_unusual = best.layout->ends_with_columns() && !layouts[i].ends_with_columns();
        const double nearer = best.axes.empty() || is_unusual ? far : 1;
        const bool is_nearer = other.unlike <= best.unlike && other.rms < nearer * best.rms;
        if (other.verdict != Verdict::wrong || other.is_right_if_transposed || is_nearer)
            best = std::move(other);
    }
    return best;
}

ArrayJudgement Judge::judge(const GivenArray& given) {
    const std::vector<Layout> layouts = layouts_of(problem_.plan, given.id, given.shape);
    if (layouts.empty()) {
        ArrayJudgement judgement{.id = given.id, .type = given.type};
        judgement.finding = unfit_text(problem_.plan, given.id, given.shape);
        return judgement;
    }
    // From the strictest type on: that of its file, that of arrays before it, and the one that its
    // numbers were evidently rounded to.
    ArrayJudgement judgement = best_layout(given, layouts, given.type);
    const bool may_be_smaller = judgement.verdict == Verdict::wrong &&
                                !judgement.is_right_if_transposed && !given.type_is_certain &&
                                !limits_.tolerance;
    if (may_be_smaller) {
        std::vector<NumberType> types{coarsest_};
        if (const auto evident = evident_type(given, layouts, false)) types.push_back(*evident);
        std::sort(types.begin(), types.end(),
                  [](NumberType a, NumberType b) { return row_of(a).unit < row_of(b).unit; });
        for (const NumberType type : types)
            if (judgement.verdict == Verdict::wrong &&
                row_of(type).unit > row_of(judgement.type).unit)
                judgement = best_layout(given, layouts, type);
    }
    if (row_of(judgement.type).unit > row_of(coarsest_).unit) coarsest_ = judgement.type;
    const auto likely = may_be_smaller && judgement.verdict == Verdict::wrong
                            ? evident_type(given, layouts, true)
                            : std::nullopt;
    if (likely && row_of(*likely).unit > row_of(judgement.type).unit) {
        ArrayJudgement other = best_layout(given, layouts, *likely);
        if (other.verdict == Verdict::wrong) judgement = std::move(other);
    }
    locate(judgement, given);
    return judgement;
}

}  // namespace attn
