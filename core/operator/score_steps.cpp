#include "core/operator/score_steps.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "core/operator/mask.hpp"

namespace attn {
namespace {

/// The scale. The default divides by sqrt(d_k), as PyTorch programs write it: a factor would round
/// differently. Source: Vaswani et al. 2017, section 3.2.1.
namespace scale_step {

std::size_t times(const ScoreSettings&, std::size_t) {
    return 1;
}

double root_of(const ScoreRow& row) {
    return std::sqrt(static_cast<double>(row.d_k));
}

template <class T>
void apply(std::span<T> scores, const ScoreRow& row, std::size_t) {
    const double root = root_of(row);
    if (row.scale == 1.0 / root)
        for (T& score : scores) score /= static_cast<T>(root);
    else
        for (T& score : scores) score *= static_cast<T>(row.scale);
}

double number(const ScoreRow& row) {
    return row.scale;
}

}  // namespace scale_step

/// c tanh(x / c). Gemma 2 (arXiv 2408.00118, section 2); ONNX Attention's softcap.
namespace softcap_step {

std::size_t times(const ScoreSettings& asked, std::size_t) {
    return asked.softcap == 0 ? 0 : 1;
}

template <class T>
void apply(std::span<T> scores, const ScoreRow& row, std::size_t) {
    const T cap = static_cast<T>(row.asked.softcap);
    if (cap == T{0}) return;
    // The tanh of a float32 is computed in float64, whose last bit differs between C libraries.
    for (T& score : scores)
        score = cap * static_cast<T>(std::tanh(static_cast<double>(score / cap)));
}

double cap(const ScoreSettings& asked) {
    return asked.softcap;
}

double number(const ScoreRow& row) {
    return row.asked.softcap;
}

}  // namespace softcap_step

/// x + slope (k - p). Press et al. 2022, arXiv 2108.12409.
namespace alibi_step {

std::size_t times(const ScoreSettings& asked, std::size_t) {
    return asked.alibi ? 1 : 0;
}

double number(const ScoreRow& row) {
    return alibi_slope(row.asked, row.heads, row.head);
}

template <class T>
void apply(std::span<T> scores, const ScoreRow& row, std::size_t) {
    const T slope = static_cast<T>(number(row));
    for (std::size_t key = 0; key < scores.size(); ++key)
        scores[key] += slope * static_cast<T>(static_cast<std::int64_t>(key) - row.position);
}

}  // namespace alibi_step

/// x + bias, an additive mask.
namespace bias_step {

std::size_t times(const ScoreSettings&, std::size_t additive_masks) {
    return additive_masks;
}

template <class T>
void apply(std::span<T> scores, const ScoreRow& row, std::size_t index) {
    const Broadcast& bias = row.biases[index];
    for (std::size_t key = 0; key < scores.size(); ++key)
        scores[key] += static_cast<T>(bias.at(row.batch, row.head, row.query, key));
}

}  // namespace bias_step

// Steps are applied in this order.
constexpr ScoreStep all_score_steps[] = {
    {.key = "scale",
     .times = scale_step::times,
     .float32 = scale_step::apply,
     .float64 = scale_step::apply,
     .emits = {"scaled_scores", "scaled_scores"},
     .kernel = StepKind::scale,
     .number = scale_step::number,
     .folds_into_query = true},
    {.key = "softcap",
     .times = softcap_step::times,
     .float32 = softcap_step::apply,
     .float64 = softcap_step::apply,
     .emits = {"capped_scores", "capped_scores"},
     .kernel = StepKind::softcap,
     .number = softcap_step::number,
     .must_fit_dtype = softcap_step::cap,
     .input_divisor = softcap_step::number},
    {.key = "alibi",
     .times = alibi_step::times,
     .float32 = alibi_step::apply,
     .float64 = alibi_step::apply,
     .emits = {"alibi_scores", "alibi_scores"},
     .kernel = StepKind::alibi,
     .number = alibi_step::number,
     .uses_position = true,
     .adds_terms = true},
    {.key = "mask",
     .times = bias_step::times,
     .float32 = bias_step::apply,
     .float64 = bias_step::apply,
     .emits = {"bias_0_scores", "bias_1_scores"},
     .kernel = StepKind::bias,
     .adds_terms = true},
};
static_assert(same_keys(all_score_steps, score_step_keys));
// Fused kernels divide the factor of the queries, the first step, by the divisor of the second.
static_assert(all_score_steps[0].folds_into_query &&
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

std::string_view step_beyond_kernels(const ScoreSettings& asked) {
    for (const ScoreStep& step : all_score_steps)
        if (!step.kernel && step.times(asked, 0) != 0) return step.key;
    return {};
}

}  // namespace attn
