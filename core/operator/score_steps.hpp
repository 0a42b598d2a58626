// What happens to a score between the product and the softmax, in one ordered list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/operator/mask.hpp"

namespace attn {

/// A place in the scores. `position` is the query's, cached length and alignment counted in.
struct ScorePlace {
    std::size_t batch, head, query, key;
    std::int64_t position;
};

/// One step: a function of the score and its place, each operation of it rounded to T as programs
/// on tensors round it. Where `emits` names an array, the scores are kept under that name after the
/// step.
template <class T>
struct ScoreModifier {
    std::function<T(T score, const ScorePlace& place)> apply;
    std::string emits;
};

/// c tanh(x / c), or x where c is 0; gives capped_scores. Gemma 2 (arXiv 2408.00118, section 2);
/// ONNX Attention's softcap.
template <class T>
ScoreModifier<T> softcap(double c);

/// slope_h = 2^(-8 (h + 1) / heads). Press et al. 2022, arXiv 2108.12409.
double alibi_slope(std::size_t head, std::size_t heads);

/// x + slope_h (k - p); gives alibi_scores.
template <class T>
ScoreModifier<T> alibi(std::size_t heads);

/// x + bias[batch, head, query, key], the index-th additive mask; gives bias_0_scores, ...
template <class T>
ScoreModifier<T> add_bias(Broadcast bias, std::size_t index);

/// All of them in the contract's order. A new modifier takes its place in this list.
template <class T>
std::vector<ScoreModifier<T>> score_modifiers(double cap, bool with_alibi, std::size_t heads,
                                              const std::vector<Broadcast>& biases);

}  // namespace attn
