// What happens to a score between the product and the softmax; see score_steps.hpp.
#include "core/operator/score_steps.hpp"

#include <cmath>
#include <utility>

namespace attn {

template <class T>
ScoreModifier<T> softcap(double cap) {
    const T c = static_cast<T>(cap);
    // The tangent of a float32 by way of float64, whose last bit differs between C libraries.
    const auto tanh = [](T x) { return static_cast<T>(std::tanh(static_cast<double>(x))); };
    return {[c, tanh](T x, const ScorePlace&) { return c == T{0} ? x : c * tanh(x / c); },
            "capped_scores"};
}

double alibi_slope(std::size_t head, std::size_t heads) {
    return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
}

template <class T>
ScoreModifier<T> alibi(std::size_t heads) {
    return {[heads](T x, const ScorePlace& at) {
                const auto distance = static_cast<std::int64_t>(at.key) - at.position;
                const T slope = static_cast<T>(alibi_slope(at.head, heads));
                return x + slope * static_cast<T>(distance);
            },
            "alibi_scores"};
}

template <class T>
ScoreModifier<T> add_bias(Broadcast bias, std::size_t index) {
    return {[bias = std::move(bias)](T x, const ScorePlace& at) {
                return x + static_cast<T>(bias.at(at.batch, at.head, at.query, at.key));
            },
            "bias_" + std::to_string(index) + "_scores"};
}

template <class T>
std::vector<ScoreModifier<T>> score_modifiers(double cap, bool with_alibi, std::size_t heads,
                                              const std::vector<Broadcast>& biases) {
    std::vector<ScoreModifier<T>> list{softcap<T>(cap)};
    if (with_alibi) list.push_back(alibi<T>(heads));
    for (std::size_t i = 0; i < biases.size(); ++i) list.push_back(add_bias<T>(biases[i], i));
    return list;
}

template std::vector<ScoreModifier<float>> score_modifiers(double, bool, std::size_t,
                                                           const std::vector<Broadcast>&);
template std::vector<ScoreModifier<double>> score_modifiers(double, bool, std::size_t,
                                                            const std::vector<Broadcast>&);

}  // namespace attn
