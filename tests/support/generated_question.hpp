// Questions for the operator over its whole space: every magnitude and shape of scores, times every
// option, from a seed; and their answer by the formula alone, in any floating-point type.
#pragma once

#include "core/operator/attention.hpp"
#include "tests/support/support.hpp"

namespace attn::test {

/// The answer to one question, flat and row-major.
template <class Real>
struct Formula {
    std::vector<Real> context;    ///< (batch, heads, q_len, d_v)
    std::vector<Real> weights;    ///< (batch, heads, q_len, kv_len)
    std::vector<Real> logsumexp;  ///< (batch, heads, q_len)
    Real largest_score = 0;       ///< the largest magnitude of what the softmax sees
};

/// A question as drawn settings, with its call.
template <class T>
struct GeneratedQuestion {
    AttentionCall<T> call;
    std::vector<std::int64_t> offset{0};  ///< one, or one per batch entry
    bool causal = false;
    std::optional<std::pair<std::int64_t, std::int64_t>> window;
    std::vector<std::uint64_t> kv_lengths;  ///< empty: all keys
    std::optional<Array<double>> keep;      ///< (q_len, kv_len), 0 blocks
    std::vector<Array<double>> biases;      ///< each (q_len, kv_len), rounded to T
    std::string words;                      ///< what was drawn

    std::size_t batch() const { return call.query.shape(0); }
    std::size_t heads() const { return call.query.shape(1); }
    std::size_t q_len() const { return call.query.shape(2); }
    std::size_t kv_len() const { return call.key.shape(2); }

    /// Whether the formulas of the masks let query q see key k.
    bool sees(std::size_t batch, std::size_t q, std::size_t k) const;

    /// The answer step by step in Real, the scale applied to the queries: in long double the truth,
    /// in T what plain arithmetic gives.
    template <class Real>
    Formula<Real> formula() const;
};

/// The question of this seed, the first choices and numbers made of the bytes of `draws`. Numbers
/// are exact in T.
template <class T>
GeneratedQuestion<T> generate_question(std::uint64_t seed, std::string_view draws = {});

}  // namespace attn::test
