// What happens to a score between the product and the softmax; see modifiers.hpp.
#include "core/modifiers.hpp"

#include <cmath>
#include <utility>

namespace attn {

ScoreModifier softcap(double c) {
    return {[c](double x, const ScorePlace&) { return c == 0 ? x : c * std::tanh(x / c); },
            "capped_scores"};
}

double alibi_slope(std::size_t head, std::size_t heads) {
    return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
}

ScoreModifier alibi(std::size_t heads) {
    return {[heads](double x, const ScorePlace& at) {
                const auto distance = static_cast<std::int64_t>(at.key) - at.position;
                return x + alibi_slope(at.head, heads) * static_cast<double>(distance);
            },
            "alibi_scores"};
}

ScoreModifier add_bias(Broadcast bias, std::size_t index) {
    return {[bias = std::move(bias)](double x, const ScorePlace& at) {
                return x + bias.at(at.batch, at.head, at.query, at.key);
            },
            "bias_" + std::to_string(index) + "_scores"};
}

std::vector<ScoreModifier> score_modifiers(double cap, bool with_alibi, std::size_t heads,
                                           const std::vector<Broadcast>& biases) {
    std::vector<ScoreModifier> list{softcap(cap)};
    if (with_alibi) list.push_back(alibi(heads));
    for (std::size_t i = 0; i < biases.size(); ++i) list.push_back(add_bias(biases[i], i));
    return list;
}

}  // namespace attn
