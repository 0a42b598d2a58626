// The steps on scores between the product and the softmax: a table, in the order in which they are
// applied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernels/kernel.hpp"
#include "core/operator/arrays.hpp"

namespace attn {

class Broadcast;
class Quotes;

/// The settings of the steps, except the scale.
struct ScoreSettings {
    double softcap = 0;  ///< c of c tanh(x / c); 0 is off
    bool alibi = false;
};

/// The scores of one query, and the inputs of its steps. `position` is the query's position among
/// the keys, with cached length and alignment.
struct ScoreRow {
    const ScoreSettings& asked;
    double scale;
    const Broadcast* biases;  ///< additive masks
    std::size_t heads, d_k;
    std::size_t batch, head, query;
    std::int64_t position;
};

/// Changes the scores of a row against all keys, each operation rounded to T as in tensor programs.
/// `index` counts the applications of a repeated step.
template <class T>
using ApplyStep = void (*)(std::span<T> scores, const ScoreRow& row, std::size_t index);

struct ScoreStep {
    std::string_view key;    ///< the setting or operand that enables it
    std::string_view title;  ///< of its part of a walk
    /// How often it is applied: 0 is off.
    std::size_t (*times)(const ScoreSettings& asked, std::size_t additive_masks);
    ApplyStep<float> float32;
    ApplyStep<double> float64;
    /// The scores after the first and the second application; a step that is off does not change
    /// them.
    ArrayId emits[2];
    /// Its form in fused kernels; empty: only the reference supports it.
    std::optional<kernels::StepKind> kernel;
    double (*number)(const ScoreRow& row);  ///< kernels::Step's; null: none
    std::string (*words)(const ScoreRow& row, std::size_t index, const Quotes& quotes);
};

std::span<const ScoreStep> score_steps();

template <class T>
ApplyStep<T> apply_of(const ScoreStep& step) {
    if constexpr (sizeof(T) == sizeof(float))
        return step.float32;
    else
        return step.float64;
}

/// One application of a step.
struct StepUse {
    const ScoreStep& step;
    std::size_t index;
};

/// The steps of a question, in order.
std::vector<StepUse> steps_taken(const ScoreSettings& asked, std::size_t additive_masks);

/// The key of a step of the question that fused kernels do not support; empty: none.
std::string_view step_beyond_kernels(const ScoreSettings& asked);

}  // namespace attn
