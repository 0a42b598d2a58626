#include "core/operator/score_steps.hpp"

#include <cmath>

#include "core/operator/mask.hpp"
#include "core/operator/quotes.hpp"

namespace attn {
namespace {

using kernels::StepKind;

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

std::string words(const ScoreRow& row, std::size_t, const Quotes& quotes) {
    const std::string root = "sqrt(d_k) = sqrt(" + std::to_string(row.d_k) + ")";
    if (!quotes.is_given("scale") && !quotes.has_projections())
        return "The scores stay as they are: the scale is 1 without projections (" +
               quotes.source("init") + ").";
    if (row.scale == 1 / root_of(row))
        return "Every score is divided by " + root + ", that is scale " + quotes.number(row.scale) +
               " (" + quotes.source("scale") +
               "). A score adds up d_k products, so it grows with d_k; divided by sqrt(d_k) it "
               "stays about as large for any d_k, and the softmax does not give nearly everything "
               "to one key.";
    return "Every score is multiplied by " + quotes.setting(row.scale) + " (" +
           quotes.source("scale") + "; the default would be " +
           (quotes.has_projections() ? "1/sqrt(d_k) = 1/sqrt(" + std::to_string(row.d_k) +
                                           ") = " + quotes.number(1 / root_of(row))
                                     : "1 without projections") +
           ").";
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

double number(const ScoreRow& row) {
    return row.asked.softcap;
}

std::string words(const ScoreRow& row, std::size_t, const Quotes& quotes) {
    return "C tanh(x / C) with C = " + quotes.setting(row.asked.softcap) + " (" +
           quotes.source("softcap") + ") keeps every score between -C and C.";
}

}  // namespace softcap_step

/// x + slope (k - p), slope = 2^(-8 (h + 1) / heads). Press et al. 2022, arXiv 2108.12409.
namespace alibi_step {

std::size_t times(const ScoreSettings& asked, std::size_t) {
    return asked.alibi ? 1 : 0;
}

double slope_of(const ScoreRow& row) {
    return std::exp2(-8.0 * static_cast<double>(row.head + 1) / static_cast<double>(row.heads));
}

template <class T>
void apply(std::span<T> scores, const ScoreRow& row, std::size_t) {
    const T slope = static_cast<T>(slope_of(row));
    for (std::size_t key = 0; key < scores.size(); ++key)
        scores[key] += slope * static_cast<T>(static_cast<std::int64_t>(key) - row.position);
}

std::string words(const ScoreRow& row, std::size_t, const Quotes& quotes) {
    return "slope * (j - p) is added to the score of key j (" + quotes.source("alibi") +
           "): keys lose more, the further before the query they are. slope = 2^(-8 (h + 1) "
           "/ heads) = 2^(-8 * " +
           std::to_string(row.head + 1) + " / " + std::to_string(row.heads) +
           ") = " + quotes.number(slope_of(row)) + ", " + quotes.position() + ".";
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

std::string words(const ScoreRow&, std::size_t index, const Quotes& quotes) {
    return quotes.additive_mask_source(index) +
           " is added to the scores. Where it is -Infinity it blocks the key.";
}

}  // namespace bias_step

// Steps are applied in this order.
constexpr ScoreStep all_score_steps[] = {
    {"scale",
     "Scale",
     scale_step::times,
     scale_step::apply,
     scale_step::apply,
     {"scaled_scores", "scaled_scores"},
     StepKind::scale,
     scale_step::number,
     scale_step::words},
    {"softcap",
     "Soft cap",
     softcap_step::times,
     softcap_step::apply,
     softcap_step::apply,
     {"capped_scores", "capped_scores"},
     StepKind::softcap,
     softcap_step::number,
     softcap_step::words},
    {"alibi",
     "ALiBi",
     alibi_step::times,
     alibi_step::apply,
     alibi_step::apply,
     {"alibi_scores", "alibi_scores"},
     StepKind::alibi,
     alibi_step::slope_of,
     alibi_step::words},
    {"mask",
     "Additive mask",
     bias_step::times,
     bias_step::apply,
     bias_step::apply,
     {"bias_0_scores", "bias_1_scores"},
     StepKind::bias,
     nullptr,
     bias_step::words},
};
// Fused kernels fold the scale, divided by the soft cap, into the queries.
static_assert(all_score_steps[0].kernel == StepKind::scale &&
              all_score_steps[1].kernel == StepKind::softcap);

}  // namespace

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

std::string_view step_beyond_kernels(const ScoreSettings& asked) {
    for (const ScoreStep& step : all_score_steps)
        if (!step.kernel && step.times(asked, 0) != 0) return step.key;
    return {};
}

}  // namespace attn
