#include "core/check/seen_dropout.hpp"

#include <algorithm>

#include "core/check/evaluate.hpp"

namespace attn {
namespace {

/// Smaller weights may be 0 in another program because they underflow.
constexpr double least_weight = 1e-6;

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

    const Evaluator evaluator(problem, Precision::float64);
    Candidate asked(evaluator, problem.asked, false);
    std::vector<double> kept(theirs->values.size(), 1), ratios;
    bool drops = false;
    std::size_t at = 0;
    for (std::size_t batch = 0; batch < plan.batch; ++batch)
        for (std::size_t head = 0; head < plan.heads; ++head)
            for (std::size_t row = 0; row < plan.rows; ++row) {
                const Numbers& weights = asked.row(theirs->id, batch, head, row);
                for (std::size_t key = 0; key < plan.kv_len; ++key, ++at) {
                    const double weight = theirs->values[at];
                    if (weight == 0) kept[at] = 0;
                    if (!(weights.value[key] > least_weight)) continue;
                    if (weight == 0) drops = true;
                    if (weight > 0) ratios.push_back(weight / weights.value[key]);
                }
            }
    if (!drops || ratios.empty()) return std::nullopt;
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    Problem seen = problem;
    seen.dropout_kept = std::move(kept);
    seen.kept_weight = *middle;
    return seen;
}

}  // namespace attn
