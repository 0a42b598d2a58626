// The gates of linear attention, as check reads them.
#pragma once

#include "core/check/evaluate.hpp"

namespace attn {

/// The gates of a key head.
struct HeadGates {
    const double *decays = nullptr, *beta = nullptr;  ///< g, (tokens, columns); (tokens)
    const double* bonus = nullptr;                    ///< (d_k)
    bool is_plain = false;                            ///< decays are e^g
    std::size_t columns = 1;

    HeadGates(const Problem& problem, std::size_t index, std::size_t tokens) {
        if (const auto& given = problem.operands["decay"]) {
            columns = given->shape[3];
            decays = given->values.data() + index * tokens * columns;
            is_plain = problem.plan.has_plain_decay();
        }
        const std::size_t kv_heads = problem.plan.kv_heads;
        if (!problem.bonus.empty())
            bonus = problem.bonus.data() + index % kv_heads * (problem.bonus.size() / kv_heads);
        if (const auto& given = problem.operands["beta"])
            beta = given->values.data() + index * tokens;
    }
    double decay(std::size_t t, std::size_t i) const {
        if (decays == nullptr) return 1;
        const double g = decays[t * columns + (columns == 1 ? 0 : i)];
        return is_plain ? g : std::exp(g);
    }
    /// What a token gives to its own output, and the largest of its factors.
    double own_weight(const double* query, const double* key, std::size_t d_k) const {
        double sum = 0;
        for (std::size_t i = 0; i < d_k; ++i) sum += query[i] * bonus[i] * key[i];
        return sum;
    }
    double largest_bonus(std::size_t d_k) const {
        double most = 0;
        for (std::size_t i = 0; i < d_k; ++i) most = std::max(most, std::abs(bonus[i]));
        return most;
    }
    double rate(std::size_t t) const { return beta == nullptr ? 1 : beta[t]; }

    struct Bounds {
        double most = 1, decay_error = 0;  ///< the largest factor, and relative error of one
        double growth = 1;                 ///< of a state, by the correction
        double rate_error = 0;
    };
    Bounds bounds(std::size_t t, const ErrorModel& model, double key_length) const {
        Bounds all;
        if (beta != nullptr) {
            all.growth = std::max(1.0, std::abs(1 - beta[t] * key_length * key_length));
            all.rate_error = model.of_operand(beta[t]) + model.rounding(beta[t]);
        }
        if (decays == nullptr) return all;
        all.most = 0;
        for (std::size_t i = 0; i < columns; ++i) {
            const double g = decays[t * columns + i];
            all.most = std::max(all.most, std::abs(decay(t, i)));
            if (is_plain && g != 0)
                all.decay_error = std::max(all.decay_error, model.of_operand(g) / std::abs(g));
            else if (!is_plain && std::isfinite(g))
                all.decay_error = std::max(
                    all.decay_error, model.of_operand(g) + model.unit() * (2 * std::abs(g) + 2));
        }
        return all;
    }
};

}  // namespace attn
