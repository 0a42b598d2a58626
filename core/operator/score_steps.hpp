// What happens to a score between the product and the softmax: a table of steps, in the order in
// which they are applied.
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

/// What settings ask of the steps, besides the scale.
struct ScoreModifiers {
    double softcap = 0;  ///< c of c tanh(x / c); 0 is off
    bool alibi = false;
};

/// The scores of one query, and what the steps may know of them. `position` is the query's among
/// the keys, cached length and alignment counted in.
struct ScoreRow {
    const ScoreModifiers& asked;
    double scale;
    const Broadcast* biases;  ///< additive masks
    std::size_t heads, d_k;
    std::size_t batch, head, query;
    std::int64_t position;
};

/// Changes the scores of a row against all keys, each operation rounded to T as programs on tensors
/// round it. `index` counts a step that is taken several times.
template <class T>
using ApplyStep = void (*)(std::span<T> scores, const ScoreRow& row, std::size_t index);

struct ScoreStep {
    std::string_view key;    ///< the setting or operand that asks for it
    std::string_view title;  ///< of its part of a walk
    /// How often it is taken: 0 is off.
    std::size_t (*times)(const ScoreModifiers& asked, std::size_t additive_masks);
    ApplyStep<float> float32;
    ApplyStep<double> float64;
    /// What the scores are after the first and the second time; a step that is off leaves them as
    /// they are.
    ArrayId emits[2];
    /// Its form in fused kernels; nothing: only the reference takes it.
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

/// One time that a step is taken.
struct StepUse {
    const ScoreStep& step;
    std::size_t index;
};

/// What a question takes, in order.
std::vector<StepUse> steps_taken(const ScoreModifiers& asked, std::size_t additive_masks);

/// The key of a step that fused kernels do not have but the question takes; empty: none.
std::string_view step_beyond_kernels(const ScoreModifiers& asked);

}  // namespace attn
