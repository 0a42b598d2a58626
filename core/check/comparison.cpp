#include "core/check/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace attn {
namespace {

constexpr double outside = std::numeric_limits<double>::infinity();

/// The distance of two numbers of the type of about this size.
double unit_in_last_place(double size, const PrecisionRow& type) {
    if (!(size > 0) || !std::isfinite(size)) return type.least;
    return std::max(type.least, std::ldexp(2 * type.unit, std::ilogb(size)));
}

}  // namespace

void Fit::add(const Fit& other) {
    bound = std::max(bound, other.bound);
    squares += other.squares;
    ulp = std::max(ulp, other.ulp);
    numbers += other.numbers;
}

double Fit::root_mean_square() const {
    return numbers == 0 ? 0 : std::sqrt(squares / static_cast<double>(numbers));
}

Reproduction::Reproduction(const Evaluators& evaluators, const std::vector<TheirArray>& arrays,
                           Conventions conventions)
    : evaluators_(evaluators), arrays_(arrays), conventions_(std::move(conventions)) {}

Candidate& Reproduction::candidate(Precision type) {
    std::unique_ptr<Candidate>& one = candidates_[type];
    if (!one) one = std::make_unique<Candidate>(*evaluators_.at(type), conventions_, true);
    return *one;
}

void Reproduction::take(const TheirRow& row, std::size_t head) {
    const TheirArray& theirs = arrays_[row.array];
    const Numbers& numbers = candidate(theirs.type).row(theirs.id, row.batch, head, row.row);
    if (value_.empty()) {
        value_ = numbers.value;
        error_ = numbers.error;
        return;
    }
    for (std::size_t c = 0; c < value_.size(); ++c) {
        value_[c] += numbers.value[c];
        error_[c] += numbers.error[c];
    }
}

void Reproduction::take_mean(const TheirRow& row) {
    const auto heads = evaluators_.begin()->second->problem().plan.heads;
    for (std::size_t head = 0; head < heads; ++head) take(row, head);
    const auto count = static_cast<double>(heads);
    const double unit = row_of(arrays_[row.array].type).unit;
    for (std::size_t c = 0; c < value_.size(); ++c) {
        value_[c] /= count;
        // The sum and the quotient are rounded too.
        error_[c] = error_[c] / count + (count + 1) * unit * std::abs(value_[c]);
    }
}

Fit Reproduction::compare(const TheirRow& row, bool stops) {
    const TheirArray& theirs = arrays_[row.array];
    const PrecisionRow& type = row_of(theirs.type);
    const Plan& plan = evaluators_.begin()->second->problem().plan;
    value_.clear();
    if (plan.shown.averages(theirs.id)) {
        take_mean(row);
    } else {
        const std::vector<std::size_t>* const chosen = plan.shown.chosen(theirs.id);
        take(row, chosen == nullptr ? row.head : (*chosen)[row.head]);
    }
    const std::size_t columns = theirs.shape[3];
    const double* const numbers =
        theirs.values.data() +
        ((row.batch * theirs.shape[1] + row.head) * theirs.shape[2] + row.row) * columns;
    Fit fit;
    double largest = 0, worst = 0;
    for (std::size_t c = 0; c < columns; ++c) {
        const double given = numbers[c], value = value_[c];
        ++fit.numbers;
        if (given == value || (std::isnan(given) && std::isnan(value))) {
            if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
            continue;
        }
        double multiple = outside;
        if (std::isfinite(given) && std::isfinite(value)) {
            const double error = std::abs(given - value);
            const double bound = error_[c] + (theirs.printed ? theirs.printed->error(given) : 0);
            multiple = bound > 0 && std::isfinite(bound) ? error / bound : outside;
            largest = std::max(largest, std::abs(value));
            worst = std::max(worst, error);
        }
        fit.bound = std::max(fit.bound, multiple);
        fit.squares += multiple * multiple;
        if (stops && !(multiple <= 1)) return fit;
    }
    fit.ulp = worst == 0 ? 0 : worst / unit_in_last_place(largest, type);
    return fit;
}

Comparison::Comparison(const Problem& problem, std::vector<TheirArray> arrays)
    : problem_(problem), arrays_(std::move(arrays)) {
    for (const TheirArray& array : arrays_) {
        std::unique_ptr<Evaluator>& one = evaluators_[array.type];
        if (!one) one = std::make_unique<Evaluator>(problem_, array.type);
    }
}

bool Comparison::allows(const Conventions& conventions) const {
    return evaluators_.begin()->second->fits(conventions);
}

std::vector<TheirRow> Comparison::parts() const {
    std::vector<TheirRow> parts;
    for (std::size_t array = 0; array < arrays_.size(); ++array)
        for (std::size_t batch = 0; batch < arrays_[array].shape[0]; ++batch)
            for (std::size_t head = 0; head < arrays_[array].shape[1]; ++head)
                parts.push_back({array, batch, head, 0});
    return parts;
}

Fit Comparison::compare_all(const Conventions& conventions, ThreadPool& pool) const {
    const std::vector<TheirRow> heads = parts();
    std::vector<Fit> fits(heads.size());
    pool.run(heads.size(), [&](std::size_t item, std::size_t) {
        Reproduction one = reproduction(conventions);
        TheirRow row = heads[item];
        for (; row.row < arrays_[row.array].shape[2]; ++row.row)
            fits[item].add(one.compare(row, false));
    });
    Fit all;
    for (const Fit& fit : fits) all.add(fit);
    return all;
}

std::vector<TheirRow> Comparison::probes(const Conventions& asked, ThreadPool& pool) const {
    const std::vector<TheirRow> heads = parts();
    std::vector<std::vector<Fit>> fits(heads.size());
    pool.run(heads.size(), [&](std::size_t item, std::size_t) {
        Reproduction one = reproduction(asked);
        TheirRow row = heads[item];
        for (; row.row < arrays_[row.array].shape[2]; ++row.row)
            fits[item].push_back(one.compare(row, false));
    });
    std::vector<TheirRow> rows;
    for (std::size_t array = 0; array < arrays_.size(); ++array) {
        // The row with the largest error, then the last one of every head, and one in the middle.
        const std::array<std::size_t, 4>& shape = arrays_[array].shape;
        if (shape[0] * shape[1] * shape[2] * shape[3] == 0) continue;
        TheirRow worst{array, 0, 0, 0};
        double most = -1;
        for (std::size_t item = 0; item < heads.size(); ++item) {
            if (heads[item].array != array) continue;
            for (std::size_t row = 0; row < fits[item].size(); ++row)
                if (fits[item][row].bound > most) {
                    most = fits[item][row].bound;
                    worst = heads[item];
                    worst.row = row;
                }
        }
        rows.push_back(worst);
        rows.push_back({array, shape[0] - 1, shape[1] - 1, shape[2] - 1});
        rows.push_back({array, 0, shape[1] / 2, shape[2] / 2});
    }
    return rows;
}

}  // namespace attn
