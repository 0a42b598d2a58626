#include "core/check/comparison.hpp"

namespace attn {
namespace {

/// The part of the error under the question's own conventions that a match may leave.
constexpr double clearly_smaller = 0.25;

/// Smaller weights may be 0 in another program because they underflow.
constexpr double least_weight = 1e-6;

/// Bounds of gradients in units of the roundoff of what is added up.
constexpr double of_cancelled = 32;

/// Of dropout that drops no weight; and rows of weights that were multiplied by the same number
/// add up to the same, but for rounding in the smaller types.
constexpr double least_likely = 1e-3, same_part = 0.01;

/// The distance of two numbers of the type of about this size.
double unit_in_last_place(double size, const NumberTypeRow& type) {
    if (!(size > 0) || !std::isfinite(size)) return type.least;
    return std::max(type.least, std::ldexp(2 * type.unit, std::ilogb(size)));
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

const Numbers& Reproduction::computed(const TheirRow& row, bool with_errors) {
    const TheirArray& theirs = comparison_.array(row);
    const auto made = candidates_.try_emplace(
        {theirs.type, with_errors}, comparison_.evaluator(theirs.type), conventions_, with_errors);
    return made.first->second.row(theirs.id, row.batch, row.head, row.row);
}

bool Reproduction::is_far_off(const TheirRow& row) {
    // Sums with a large number lose digits of their own.
    if (conventions_.masked_value_is_added) return false;
    const std::span<const double> theirs = comparison_.numbers(row);
    const Numbers& numbers = computed(row, false);
    const Comparison::Asked* const asked = comparison_.asked(row);
    double largest = 0;
    for (const double x : theirs)
        if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    constexpr double far_part = 0.05, many_bounds = 100;
    for (std::size_t c = 0; c < theirs.size(); ++c) {
        const double error = std::abs(theirs[c] - numbers.value[c]);
        if (asked != nullptr && std::isfinite(error) && error > far_part * largest &&
            error > many_bounds * asked[c].bound)
            return true;
    }
    return false;
}

Fit Reproduction::compare(const TheirRow& row, bool stops, Comparison::Asked* errors) {
    const TheirArray& array = comparison_.array(row);
    const Comparison::Asked* const asked = comparison_.asked(row);
    // Powers this small may be 0, or have few digits.
    const double negligible = ErrorModel(array.type).least_power();
    const Numbers& numbers = computed(row, true);
    const std::span<const double> theirs = comparison_.numbers(row);
    Fit fit;
    double largest = 0, worst = 0;
    for (std::size_t c = 0; c < theirs.size(); ++c) {
        const double given = theirs[c], value = numbers.value[c];
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
        ++fit.numbers;
        double multiple = 0;
        if (std::isfinite(given) && std::isfinite(value)) {
            const double error = std::abs(given - value);
            const double bound =
                numbers.bound(c, given) + (array.printed ? array.printed->error(given) : 0);
            // Numbers that cancel are as exact as what they were.
            if (array.id.row().is_gradient() && std::isfinite(bound))
                largest = std::max(largest, bound / (of_cancelled * row_of(array.type).unit));
            if (error != 0) multiple = bound > 0 && std::isfinite(bound) ? error / bound : HUGE_VAL;
            worst = std::max(worst, error);
            if (errors != nullptr) errors[c] = {error, bound};
            if (asked == nullptr || (asked[c].error <= negligible && error <= negligible)) {
                // It shows nothing of the conventions.
            } else if (asked[c].error > asked[c].bound) {
                ++fit.outside;
                if (!(error <= clearly_smaller * asked[c].error)) ++fit.as_far_outside;
            } else {
                ++fit.inside;
                if (!(error <= asked[c].bound)) ++fit.no_longer_inside;
            }
        } else if (given != value && !(std::isnan(given) && std::isnan(value))) {
            multiple = HUGE_VAL;
        }
        fit.bound = std::max(fit.bound, multiple);
        fit.squares += multiple * multiple;
        if (stops && !(multiple <= 1)) return fit;
    }
    fit.part = worst == 0 ? 0 : worst / largest;
    fit.ulp = worst == 0 ? 0 : worst / unit_in_last_place(largest, row_of(array.type));
    return fit;
}

Comparison::Comparison(const Problem& problem, std::vector<TheirArray> arrays, ThreadPool& pool)
    : problem_(problem), arrays_(std::move(arrays)), asked_(arrays_.size()) {
    for (const TheirArray& one : arrays_) evaluators_.try_emplace(one.type, problem_, one.type);
    for (std::size_t index = 0; index < arrays_.size(); ++index) {
        const std::array<std::size_t, 4>& shape = arrays_[index].shape;
        const std::size_t heads = shape[0] * shape[1], count = rows(index);
        if (count * shape[3] == 0) continue;
        std::vector<double> bounds(count);
        std::vector<Asked> errors(arrays_[index].values.size());
        pool.run(heads, [&](std::size_t item, std::size_t) {
            Reproduction asked(*this, problem_.asked);
            for (std::size_t i = item * shape[2]; i < (item + 1) * shape[2]; ++i) {
                const TheirRow row = row_at(index, i);
                bounds[i] = asked.compare(row, false, &errors[row.first]).bound;
            }
        });
        const auto worst = std::max_element(bounds.begin(), bounds.end());
        const std::size_t middle = shape[1] / 2 * shape[2] + shape[2] / 2;
        for (const std::size_t row :
             {static_cast<std::size_t>(worst - bounds.begin()), count - 1, middle})
            probes_.push_back(row_at(index, row));
        if (*worst <= 1) continue;
        is_right_ = false;
        asked_[index] = std::move(errors);
    }
}

bool Comparison::sums_over_queries() const {
    static constexpr ArraySet of_rows{"grad_query", "grad_queries", "grad_head_outputs"};
    return std::ranges::any_of(arrays_, [](const TheirArray& array) {
        return array.id.row().is_gradient() && !array.id.row().counts_queries_and_keys() &&
               !of_rows.has(array.id);
    });
}

/// How many weights, projections and heads a search makes hardly depends on the question; those
/// that threads use are kept beyond the limits.
double bytes_of_search(const Plan& plan, std::size_t types, std::size_t threads) {
    constexpr double bytes = 2 * sizeof(double), tensors = 3;  // values and errors; q, k and v
    const double columns = product_of_sizes(plan.heads, plan.d_k) +
                           product_of_sizes(plan.kv_heads, plan.d_k + plan.d_v),
                 weight = bytes * product_of_sizes(plan.d_in) * columns / tensors,
                 tensor = bytes *
                          (product_of_sizes(plan.batch, plan.heads, plan.q_len, plan.d_k) +
                           product_of_sizes(plan.batch, plan.kv_heads, plan.kv_len,
                                            plan.d_k + plan.d_v)) /
                          tensors;
    const auto kept = [](double made, double size) {
        return std::min(made * size, static_cast<double>(Memo<BoundedRows>::byte_limit) + size);
    };
    const double memos = kept(32, weight) + kept(30, tensor) + kept(60, tensor) + kept(125, tensor);
    return product_of_sizes(types) * (memos + 2 * tensors * product_of_sizes(threads) * tensor);
}

std::optional<Problem> with_seen_dropout(const Problem& problem,
                                         const std::vector<TheirArray>& arrays) {
    const Plan& plan = problem.plan;
    const auto theirs = std::find_if(arrays.begin(), arrays.end(), [](const TheirArray& array) {
        return array.id == "attention_weights";
    });
    if (problem.asked.drops || theirs == arrays.end() || plan.shown.averages(theirs->id) ||
        theirs->shape != std::array{plan.batch, plan.heads, plan.rows, plan.kv_len})
        return std::nullopt;
    // Weights that are all zero fit any dropout.
    if (std::none_of(theirs->values.begin(), theirs->values.end(), [](double x) { return x > 0; }))
        return std::nullopt;

    const Evaluator evaluator(problem, NumberType::float64);
    Candidate asked(evaluator, problem.asked, false);
    std::vector<char> kept(theirs->values.size(), 1);
    std::vector<double> ratios;
    bool drops = false;
    double least_ratio = HUGE_VAL, largest_ratio = 0;  // of the sums of rows
    std::size_t at = 0;
    for (std::size_t batch = 0; batch < plan.batch; ++batch)
        for (std::size_t head = 0; head < plan.heads; ++head)
            for (std::size_t row = 0; row < plan.rows; ++row) {
                const Numbers& weights = asked.row(theirs->id, batch, head, row);
                double sum = 0, asked_sum = 0;
                for (std::size_t key = 0; key < plan.kv_len; ++key, ++at) {
                    const double weight = theirs->values[at];
                    if (weight == 0) kept[at] = 0;
                    sum += weight;
                    asked_sum += weights.value[key];
                    if (!(weights.value[key] > least_weight)) continue;
                    if (weight == 0) drops = true;
                    if (weight > 0) ratios.push_back(weight / weights.value[key]);
                }
                if (!(asked_sum > 0)) continue;
                least_ratio = std::min(least_ratio, sum / asked_sum);
                largest_ratio = std::max(largest_ratio, sum / asked_sum);
            }
    if (!drops) {
        // Of a few weights, perhaps none was dropped: then all rows add up to the same, more
        // than 1.
        if (ratios.empty()) return std::nullopt;
        const double p = std::round(100 * (1 - 1 / least_ratio)) / 100;
        const double likely = std::pow(1 - p, static_cast<double>(ratios.size()));
        if (!(p > 0 && p < 1 && likely > least_likely &&
              largest_ratio < least_ratio * (1 + same_part)))
            return std::nullopt;
        ratios = {1 / (1 - p)};
    }
    // Where another mask is in use, too, no weight need be seen by both.
    if (ratios.empty()) ratios.push_back(2);
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    Problem seen = problem;
    seen.dropout_kept = std::move(kept);
    seen.kept_weight = *middle;
    return seen;
}

}  // namespace attn
