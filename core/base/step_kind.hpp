// The steps on a score between the product and the softmax that fused kernels have.
#pragma once

namespace attn {

/// Each kind has a form for tiles, one for rows and a plain one, next to each other in
/// core/kernels/score_steps.hpp.
enum class StepKind {
    scale,    ///< score * number / divisor
    softcap,  ///< number * tanh(score / number)
    alibi,    ///< score - number * |key - position|, or + number * (key - position)
    formula,  ///< a small program of a formula, see Formula in core/kernels/kernel.hpp
    bias      ///< score + row[key * key_step]; -Infinity masks
};

}  // namespace attn
