// Questions for linear attention over its whole space, from a seed: rules, sizes, decays,
// magnitudes; and their answer by the recurrence alone, in any floating-point type.
#pragma once

#include "core/operator/attention.hpp"
#include "tests/support/support.hpp"

namespace attn::test::linear {

template <class T>
Tensor4<T> drawn(Dice& dice, const std::array<std::size_t, 4>& shape, double low, double high) {
    Tensor4<T> x = Tensor4<T>::from_shape(shape);
    for (T& value : x) value = static_cast<T>(dice.uniform(low, high));
    return x;
}

enum class Decay { none, mild, strong, resets, zero, growing, mixed };

/// A call with drawn sizes, and what was drawn.
template <class T>
struct Question {
    AttentionCall<T> call;
    std::string words;

    std::size_t batch() const { return call.key.shape(0); }
    std::size_t kv_heads() const { return call.key.shape(1); }
    std::size_t heads() const { return call.query.shape(1); }
    std::size_t tokens() const { return call.key.shape(2); }
    std::size_t d_k() const { return call.key.shape(3); }
    std::size_t d_v() const { return call.value.shape(3); }
};

/// Keys divided by their length, as the delta rules require to be stable.
template <class T>
void normalise(Tensor4<T>& keys) {
    for (std::size_t row = 0; row < keys.size(); row += keys.shape(3)) {
        double squares = 1e-6;
        for (std::size_t i = 0; i < keys.shape(3); ++i)
            squares += static_cast<double>(keys.data()[row + i]) *
                       static_cast<double>(keys.data()[row + i]);
        for (std::size_t i = 0; i < keys.shape(3); ++i)
            keys.data()[row + i] =
                static_cast<T>(static_cast<double>(keys.data()[row + i]) / std::sqrt(squares));
    }
}

inline double log_decay(Dice& dice, Decay decay) {
    switch (decay) {
        case Decay::none:
        case Decay::zero: return 0;
        case Decay::mild: return dice.uniform(-0.1, 0);
        case Decay::strong: return dice.uniform(-9, -1);
        case Decay::resets:
            return dice.one_in(9) ? -std::numeric_limits<double>::infinity()
                                  : dice.uniform(-0.2, 0);
        case Decay::growing: return dice.uniform(0, 0.02);
        case Decay::mixed: return dice.uniform(-4, 0.5);
    }
    return 0;
}

template <class T>
Question<T> question_of(std::uint32_t seed, std::size_t tokens) {
    Dice dice(seed);
    Question<T> q;
    const std::size_t batch = dice.among<std::size_t>({1, 1, 2}),
                      kv_heads = dice.among<std::size_t>({1, 2}),
                      group = dice.among<std::size_t>({1, 1, 3}),
                      d_k = dice.among<std::size_t>({1, 3, 8, 17, 64}),
                      d_v = dice.among<std::size_t>({1, 5, 16, 33, 64});
    const auto decay = dice.among({Decay::none, Decay::mild, Decay::strong, Decay::resets,
                                   Decay::zero, Decay::growing, Decay::mixed});
    const bool is_delta = dice.one_in(2), by_dimension = dice.one_in(2);
    const double beta_low = dice.among({0.0, 0.0, 1.0}), beta_high = dice.among({1.0, 1.0, 0.0});
    const double magnitude = dice.among({1.0, 1.0, 1e-6, 1e6});
    std::ostringstream words;
    words << "seed " << seed << " batch " << batch << " heads " << kv_heads << "*" << group
          << " tokens " << tokens << " d " << d_k << "," << d_v << " decay "
          << static_cast<int>(decay) << (by_dimension ? " each" : " one")
          << (is_delta ? " delta" : "") << " beta " << beta_low << ".." << beta_high << " values "
          << magnitude;
    q.words = words.str();
    q.call.query = drawn<T>(dice, {batch, kv_heads * group, tokens, d_k}, -1, 1);
    q.call.key = drawn<T>(dice, {batch, kv_heads, tokens, d_k}, -1, 1);
    q.call.value = drawn<T>(dice, {batch, kv_heads, tokens, d_v}, -magnitude, magnitude);
    q.call.scale = dice.among({1.0, 1 / std::sqrt(static_cast<double>(d_k)), -0.5});
    if (is_delta) {
        normalise(q.call.key);
        q.call.recurrence.beta = drawn<T>(dice, {batch, kv_heads, tokens, 1}, beta_low, beta_high);
    }
    if (decay != Decay::none) {
        q.call.recurrence.decay =
            Tensor4<T>::from_shape({batch, kv_heads, tokens, by_dimension ? d_k : 1});
        for (T& e : q.call.recurrence.decay) e = static_cast<T>(std::exp(log_decay(dice, decay)));
    }
    if (dice.one_in(2))
        q.call.recurrence.past_state =
            drawn<T>(dice, {batch, kv_heads, d_k, d_v}, -magnitude, magnitude);
    return q;
}

/// The recurrence as ONNX states it, of one batch entry and key head, in Real.
template <class Real, class T>
struct Formula {
    std::vector<Real> state;                ///< (d_k, d_v)
    std::vector<std::vector<Real>> states;  ///< after each step
    Real largest = 0;                       ///< of the states' elements and of what the sums add

    Formula(const Question<T>& q, std::size_t b, std::size_t h, bool with_past = true)
        : state(q.d_k() * q.d_v(), 0) {
        const Recurrence<T>& gates = q.call.recurrence;
        const std::size_t d_k = q.d_k(), d_v = q.d_v();
        if (gates.past_state.size() != 0 && with_past)
            for (std::size_t i = 0; i < d_k * d_v; ++i)
                state[i] = static_cast<Real>(gates.past_state(b, h, i / d_v, i % d_v));
        for (std::size_t t = 0; t < q.tokens(); ++t) {
            for (std::size_t i = 0; i < d_k && gates.decay.size() != 0; ++i)
                for (std::size_t j = 0; j < d_v; ++j)
                    state[i * d_v + j] *=
                        static_cast<Real>(gates.decay(b, h, t, gates.decay.shape(3) == 1 ? 0 : i));
            for (std::size_t j = 0; j < d_v; ++j) {
                Real u = static_cast<Real>(q.call.value(b, h, t, j));
                if (gates.beta.size() != 0) {
                    for (std::size_t i = 0; i < d_k; ++i)
                        u -= state[i * d_v + j] * static_cast<Real>(q.call.key(b, h, t, i));
                    u *= static_cast<Real>(gates.beta(b, h, t, 0));
                }
                for (std::size_t i = 0; i < d_k; ++i)
                    state[i * d_v + j] += static_cast<Real>(q.call.key(b, h, t, i)) * u;
            }
            for (Real x : state) largest = std::max(largest, std::abs(x));
            states.push_back(state);
        }
    }

    Real output(const Question<T>& q, std::size_t b, std::size_t head, std::size_t t,
                std::size_t j) const {
        Real sum = 0;
        for (std::size_t i = 0; i < q.d_k(); ++i)
            sum += states[t][i * q.d_v() + j] * static_cast<Real>(q.call.query(b, head, t, i));
        return sum * static_cast<Real>(q.call.scale);
    }
};

}  // namespace attn::test::linear
