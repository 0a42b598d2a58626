#include "core/check/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check/error_model.hpp"

namespace attn {
namespace {

/// The part of the error under the question's own conventions that a match may leave.
constexpr double clearly_smaller = 0.25;

constexpr double never_within = std::numeric_limits<double>::infinity();

/// The distance of two numbers of the type of about this size.
double unit_in_last_place(double size, const PrecisionRow& type) {
    if (!(size > 0) || !std::isfinite(size)) return type.least;
    return std::max(type.least, std::ldexp(2 * type.unit, std::ilogb(size)));
}

std::size_t place_of_row(const TheirArray& array, const TheirRow& row) {
    return ((row.batch * array.shape[1] + row.head) * array.shape[2] + row.row) * array.shape[3];
}

}  // namespace

void Fit::add(const Fit& other) {
    bound = std::max(bound, other.bound);
    squares += other.squares;
    outside += other.outside;
    inside += other.inside;
    as_far_outside += other.as_far_outside;
    no_longer_inside += other.no_longer_inside;
    part = std::max(part, other.part);
    ulp = std::max(ulp, other.ulp);
    numbers += other.numbers;
}

double Fit::root_mean_square() const {
    return numbers == 0 ? 0 : std::sqrt(squares / static_cast<double>(numbers));
}

Candidate& Reproduction::candidate(Precision type) {
    std::unique_ptr<Candidate>& one = candidates_[type];
    if (!one) one = std::make_unique<Candidate>(comparison_.evaluator(type), conventions_, true);
    return *one;
}

const Numbers& Reproduction::computed_row(Candidate& by, const TheirRow& row) const {
    const ArrayId id = comparison_.arrays()[row.array].id;
    const ShownAxes& shown = comparison_.problem().plan.shown;
    const std::vector<std::size_t>* const chosen = shown.averages(id) ? nullptr : shown.chosen(id);
    return by.row(id, row.batch, chosen == nullptr ? row.head : (*chosen)[row.head], row.row);
}

bool Reproduction::is_far_off(const TheirRow& row) {
    // Sums with a large number lose digits of their own.
    if (conventions_.masked_value_is_added) return false;
    const TheirArray& theirs = comparison_.arrays()[row.array];
    if (!without_errors_)
        without_errors_ =
            std::make_unique<Candidate>(comparison_.evaluator(theirs.type), conventions_, false);
    const Numbers& computed = computed_row(*without_errors_, row);
    const std::size_t first = place_of_row(theirs, row);
    double largest = 0;
    for (std::size_t c = 0; c < theirs.shape[3]; ++c)
        if (const double size = std::abs(theirs.values[first + c]); std::isfinite(size))
            largest = std::max(largest, size);
    constexpr double far_part = 0.05, many_bounds = 100;
    for (std::size_t c = 0; c < theirs.shape[3]; ++c) {
        const Comparison::Asked* const asked = comparison_.asked(row.array, first + c);
        const double error = std::abs(theirs.values[first + c] - computed.value[c]);
        if (asked != nullptr && std::isfinite(error) && error > far_part * largest &&
            error > many_bounds * asked->bound)
            return true;
    }
    return false;
}

/// Calls use(number, error, bound, fit) for those that are finite.
template <class Use>
Fit Reproduction::compare(const TheirRow& row, bool stops, const Use& use) {
    const TheirArray& theirs = comparison_.arrays()[row.array];
    const PrecisionRow& type = row_of(theirs.type);
    const Numbers& computed = computed_row(candidate(theirs.type), row);
    const std::size_t first = place_of_row(theirs, row);
    Fit fit;
    double largest = 0, worst = 0;
    for (std::size_t c = 0; c < theirs.shape[3]; ++c) {
        const double given = theirs.values[first + c], value = computed.value[c];
        const bool is_finite = std::isfinite(given) && std::isfinite(value);
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
        ++fit.numbers;
        double multiple = 0;
        if (is_finite) {
            const double error = std::abs(given - value);
            const double bound =
                computed.bound(c, given) + (theirs.printed ? theirs.printed->error(given) : 0);
            if (error != 0)
                multiple = bound > 0 && std::isfinite(bound) ? error / bound : never_within;
            worst = std::max(worst, error);
            use(first + c, error, bound, fit);
        } else if (given != value && !(std::isnan(given) && std::isnan(value))) {
            multiple = never_within;
        }
        fit.bound = std::max(fit.bound, multiple);
        fit.squares += multiple * multiple;
        if (stops && !(multiple <= 1)) return fit;
    }
    fit.part = worst == 0 ? 0 : worst / largest;
    fit.ulp = worst == 0 ? 0 : worst / unit_in_last_place(largest, type);
    return fit;
}

Fit Reproduction::compare(const TheirRow& row, bool stops) {
    // Powers this small may be 0, or have few digits.
    const double negligible = ErrorModel(comparison_.arrays()[row.array].type).least_power();
    return compare(row, stops, [&](std::size_t number, double error, double, Fit& fit) {
        const Comparison::Asked* const asked = comparison_.asked(row.array, number);
        if (asked == nullptr || (asked->error <= negligible && error <= negligible)) return;
        if (asked->error > asked->bound) {
            ++fit.outside;
            if (!(error <= clearly_smaller * asked->error)) ++fit.as_far_outside;
        } else {
            ++fit.inside;
            if (!(error <= asked->bound)) ++fit.no_longer_inside;
        }
    });
}

Comparison::Comparison(const Problem& problem, std::vector<TheirArray> arrays, ThreadPool& pool)
    : problem_(problem), arrays_(std::move(arrays)), asked_(arrays_.size()) {
    for (const TheirArray& array : arrays_) {
        std::unique_ptr<Evaluator>& one = evaluators_[array.type];
        if (!one) one = std::make_unique<Evaluator>(problem_, array.type);
    }
    for (std::size_t array = 0; array < arrays_.size(); ++array) {
        const std::array<std::size_t, 4>& shape = arrays_[array].shape;
        const std::size_t heads = shape[0] * shape[1];
        if (heads * shape[2] * shape[3] == 0) continue;
        std::vector<Fit> fits(heads * shape[2]);
        std::vector<Asked> errors(arrays_[array].values.size());
        pool.run(heads, [&](std::size_t item, std::size_t) {
            Reproduction asked(*this, problem_.asked);
            for (std::size_t row = 0; row < shape[2]; ++row)
                fits[item * shape[2] + row] =
                    asked.compare({array, item / shape[1], item % shape[1], row}, false,
                                  [&](std::size_t number, double error, double bound, Fit&) {
                                      errors[number] = {error, bound};
                                  });
        });
        const auto worst = std::max_element(
            fits.begin(), fits.end(), [](const Fit& a, const Fit& b) { return a.bound < b.bound; });
        const auto place = static_cast<std::size_t>(worst - fits.begin());
        probes_.push_back(
            {array, place / shape[2] / shape[1], place / shape[2] % shape[1], place % shape[2]});
        probes_.push_back({array, shape[0] - 1, shape[1] - 1, shape[2] - 1});
        probes_.push_back({array, 0, shape[1] / 2, shape[2] / 2});
        if (worst->bound <= 1) continue;
        is_right_ = false;
        asked_[array] = std::move(errors);
    }
}

bool Comparison::allows(const Conventions& conventions) const {
    return evaluators_.begin()->second->fits(conventions);
}

}  // namespace attn
