#include "core/operator/score_steps.hpp"

#include <cmath>
#include <iterator>

#include "core/operator/mask.hpp"

namespace attn {
namespace {

// The steps on a row, for either type.

/// The default divides by sqrt(d_k), as PyTorch programs write it: a factor would round
/// differently. Source: Vaswani et al. 2017, section 3.2.1.
template <class T>
void apply_scale(std::span<T> scores, const ScoreRow& row, std::size_t) {
    const double root = std::sqrt(static_cast<double>(row.d_k)),
                 scale = scale_of(row.asked, row.scale, row.head);
    if (scale == 1.0 / root)
        for (T& score : scores) score /= static_cast<T>(root);
    else
        for (T& score : scores) score *= static_cast<T>(scale);
}

template <class T>
void scale_back(std::span<T> gradients, std::span<const T>, const ScoreRow& row,
                std::size_t index) {
    apply_scale(gradients, row, index);
}

/// c tanh(x / c). Gemma 2 (arXiv 2408.00118, section 2); ONNX Attention's softcap.
template <class T>
void apply_softcap(std::span<T> scores, const ScoreRow& row, std::size_t) {
    const T cap = static_cast<T>(row.asked.softcap);
    if (cap == T{0}) return;
    // The tanh of a float32 is computed in float64, whose last bit differs between C libraries.
    for (T& score : scores)
        score =
            cap * row.round(static_cast<T>(std::tanh(static_cast<double>(row.round(score / cap)))));
}

template <class T>
void softcap_back(std::span<T> gradients, std::span<const T> scores, const ScoreRow& row,
                  std::size_t) {
    const double cap = row.asked.softcap;
    for (std::size_t k = 0; k < scores.size(); ++k) {
        // 1 - tanh^2 as 1 / cosh^2, which does not cancel.
        const double cosh = std::cosh(static_cast<double>(scores[k]) / cap);
        gradients[k] *= static_cast<T>(1 / cosh / cosh);
    }
}

double softcap_of(const ScoreRow& row) {
    return row.asked.softcap;
}

double slope_of(const ScoreRow& row) {
    return alibi_slope(row.asked, row.heads, row.head);
}

/// x - slope |k - p|, or x + slope (k - p). Press et al. 2022, arXiv 2108.12409.
template <class T>
void apply_alibi(std::span<T> scores, const ScoreRow& row, std::size_t) {
    const T slope = static_cast<T>(slope_of(row));
    const bool is_signed = row.asked.alibi_distance == AlibiDistance::from_query;
    for (std::size_t key = 0; key < scores.size(); ++key) {
        const std::int64_t distance = as_signed(key) - row.position;
        scores[key] +=
            row.round(slope * static_cast<T>(is_signed ? distance : -std::abs(distance)));
    }
}

/// A formula of the score.
template <class T>
void apply_formula(std::span<T> scores, const ScoreRow& row, std::size_t index) {
    compute_row(row.asked.score_formulas[index].formula, *row.sizes,
                {row.batch, row.head, row.query}, row.first_key, scores);
}

template <class T>
void formula_back(std::span<T> gradients, std::span<const T> scores, const ScoreRow& row,
                  std::size_t index) {
    std::vector<T> slopes(scores.begin(), scores.end());
    apply_formula(std::span<T>(slopes), row, index);
    for (std::size_t k = 0; k < slopes.size(); ++k) gradients[k] *= slopes[k];
}

/// x + bias, an additive mask.
template <class T>
void apply_bias(std::span<T> scores, const ScoreRow& row, std::size_t index) {
    const Broadcast& bias = row.biases[index];
    for (std::size_t key = 0; key < scores.size(); ++key)
        scores[key] += static_cast<T>(bias.at(row.batch, row.head, row.query, key));
}

constexpr ArrayId emits_once[] = {"scaled_scores", "capped_scores", "alibi_scores"},
                  formula_scores[] = {"formula_0_scores", "formula_1_scores"};

// Steps are applied in this order.
constexpr ScoreStep all_score_steps[] = {
    {.key = "scale",
     .times = [](const ScoreSettings&, std::size_t) { return std::size_t{1}; },
     .apply = {apply_scale, apply_scale},
     .back = {scale_back, scale_back},
     .emits = {&emits_once[0], 1},
     .kernel = StepKind::scale,
     .number = [](const ScoreRow& row) { return scale_of(row.asked, row.scale, row.head); }},
    {.key = "softcap",
     .times = [](const ScoreSettings& asked, std::size_t) -> std::size_t {
         return asked.softcap == 0 ? 0 : 1;
     },
     .apply = {apply_softcap, apply_softcap},
     .back = {softcap_back, softcap_back},
     .emits = {&emits_once[1], 1},
     .kernel = StepKind::softcap,
     .number = softcap_of,
     .must_fit_dtype = [](const ScoreSettings& asked) { return asked.softcap; },
     .input_divisor = softcap_of},
    {.key = "alibi",
     .times = [](const ScoreSettings& asked, std::size_t) -> std::size_t {
         return asked.alibi ? 1 : 0;
     },
     .apply = {apply_alibi, apply_alibi},
     .back = {},
     .emits = {&emits_once[2], 1},
     .kernel = StepKind::alibi,
     .number = slope_of,
     .uses_position = true,
     .adds_terms = true},
    {.key = "score_mod",
     .times = [](const ScoreSettings& asked, std::size_t) { return asked.score_formulas.size(); },
     .apply = {apply_formula, apply_formula},
     .back = {formula_back, formula_back},
     .emits = formula_scores,
     .kernel = StepKind::formula,
     .adds_terms = true},
    {.key = "mask",
     .times = [](const ScoreSettings&, std::size_t additive_masks) { return additive_masks; },
     .apply = {apply_bias, apply_bias},
     .back = {},
     .emits = bias_scores,
     .kernel = StepKind::bias,
     .adds_terms = true},
};
static_assert(same_keys(all_score_steps, score_step_keys));
// Fused kernels divide the factor of the queries, the first step, by the divisor of the second.
static_assert(all_score_steps[0].kernel == StepKind::scale &&
              all_score_steps[1].kernel == StepKind::softcap);

}  // namespace

double alibi_slope(const ScoreSettings& asked, std::size_t heads, std::size_t head) {
    if (!asked.alibi_slopes.empty()) return asked.alibi_slopes[head];
    const auto slope = [](std::size_t i, std::size_t of) {
        return std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(of));
    };
    const std::size_t power = std::bit_floor(heads);
    if (head < power || asked.slope_formula == SlopeFormula::geometric)
        return slope(head + 1, asked.slope_formula == SlopeFormula::geometric ? heads : power);
    return slope(2 * (head - power) + 1, 2 * power);
}

std::size_t DistanceBuckets::of(std::size_t query, std::size_t key) const {
    std::size_t buckets = count, first = 0, distance = query > key ? query - key : 0;
    if (both_sides) {
        buckets /= 2;
        if (key > query) {
            first = buckets;
            distance = key - query;
        }
    }
    const std::size_t exact = buckets / 2;
    if (distance < exact) return first + distance;
    const double ratio = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                         std::log(max_distance / static_cast<double>(exact));
    // At the edges of buckets it is an integer, below which rounding must not bring it.
    const double more = ratio * static_cast<double>(buckets - exact) + 1e-9;
    const auto limit = static_cast<double>(buckets - 1 - exact);
    return first + exact + static_cast<std::size_t>(std::clamp(more, 0.0, limit));
}

std::span<const ScoreStep> score_steps() {
    return all_score_steps;
}

std::vector<StepUse> steps_taken(const ScoreSettings& asked, std::size_t additive_masks) {
    std::vector<StepUse> taken;
    for (const ScoreStep& step : all_score_steps)
        for (std::size_t index = 0; index < step.times(asked, additive_masks); ++index)
            taken.push_back({step, index});
    return taken;
}

bool uses_position(const ScoreSettings& asked) {
    return std::any_of(
        std::begin(all_score_steps), std::end(all_score_steps),
        [&](const ScoreStep& step) { return step.uses_position && step.times(asked, 0) != 0; });
}

}  // namespace attn
