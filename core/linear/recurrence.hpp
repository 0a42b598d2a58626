// One step of the recurrence on one state, and where a token's operands are.
#pragma once

#include "core/base/torch_math.hpp"
#include "core/operator/attention.hpp"

namespace attn {

/// The operands of one batch entry and key head: row t of each belongs to token t.
template <class T>
struct HeadOperands {
    const T *key = nullptr, *value = nullptr;
    const T* decay = nullptr;       ///< null: none
    std::size_t decay_columns = 0;  ///< 1 or d_k
    const T* beta = nullptr;        ///< null: no delta rule
    const T* past_state = nullptr;  ///< null: zeros
    const T* bonus = nullptr;       ///< null: outputs are read after the token's step
    std::size_t tokens = 0, d_k = 0, d_v = 0;

    HeadOperands() = default;
    /// `index` is batch entry * kv_heads + key head.
    HeadOperands(const AttentionCall<T>& call, std::size_t index)
        : decay_columns(call.recurrence.decay.shape(3)), tokens(call.key.shape(2)),
          d_k(call.key.shape(3)), d_v(call.value.shape(3)) {
        const auto rows_of = [&](const Tensor4<T>& x) {
            return x.size() == 0 ? nullptr : x.data() + index * x.shape(2) * x.shape(3);
        };
        key = rows_of(call.key);
        value = rows_of(call.value);
        decay = rows_of(call.recurrence.decay);
        beta = rows_of(call.recurrence.beta);
        past_state = rows_of(call.recurrence.past_state);
        const std::vector<T>& all = call.recurrence.bonus;
        if (!all.empty()) bonus = all.data() + index % call.key.shape(1) * d_k;
    }

    /// The factor of row i of the state at token t.
    T decay_of(std::size_t t, std::size_t i) const {
        return decay[t * decay_columns + (decay_columns == 1 ? 0 : i)];
    }

    void start(T* state) const {
        if (past_state == nullptr)
            std::fill_n(state, d_k * d_v, T{0});
        else
            std::copy_n(past_state, d_k * d_v, state);
    }

    /// Token t's step on the state, (d_k, d_v), with a buffer of d_v elements.
    void step(std::size_t t, T* state, T* update) const {
        const T *const k = key + t * d_k, *const v = value + t * d_v;
        if (decay != nullptr)
            for (std::size_t i = 0; i < d_k; ++i) {
                const T factor = decay_of(t, i);
                for (std::size_t j = 0; j < d_v; ++j) state[i * d_v + j] *= factor;
            }
        if (beta == nullptr) {
            std::copy_n(v, d_v, update);
        } else {
            multiply_row(k, d_k, state, d_v, update);
            for (std::size_t j = 0; j < d_v; ++j) update[j] = beta[t] * (v[j] - update[j]);
        }
        for (std::size_t i = 0; i < d_k; ++i)
            for (std::size_t j = 0; j < d_v; ++j) state[i * d_v + j] += k[i] * update[j];
    }

    /// What a token gives to its own output, by which its value is multiplied.
    T own_weight(std::size_t t, const T* q) const {
        T sum{0};
        for (std::size_t i = 0; i < d_k; ++i) sum += q[i] * bonus[i] * key[t * d_k + i];
        return sum;
    }

    /// scale S^T q, of the state before token t's step where there is a bonus, else after it.
    void read(std::size_t t, const T* q, const T* state, double scale, T* output) const {
        multiply_row(q, d_k, state, d_v, output);
        if (bonus != nullptr) {
            const T weight = own_weight(t, q);
            for (std::size_t j = 0; j < d_v; ++j) output[j] += weight * value[t * d_v + j];
        }
        for (std::size_t j = 0; j < d_v; ++j) output[j] *= static_cast<T>(scale);
    }
};

}  // namespace attn
