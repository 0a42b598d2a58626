// Dropout that another program applied and the question does not have.
#include <algorithm>
#include <cmath>

#include "core/check/comparison.hpp"

namespace attn {
namespace {

/// Smaller weights may be 0 in another program because they underflow.
constexpr double least_weight = 1e-6;

/// Of dropout that drops no weight; and rows of weights that were multiplied by the same number
/// add up to the same, but for rounding in the smaller types.
constexpr double least_likely = 1e-3, same_part = 0.01;

}  // namespace

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

    const Evaluator evaluator(problem, Precision::float64);
    Candidate asked(evaluator, problem.asked, false);
    std::vector<double> kept(theirs->values.size(), 1), ratios;
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
