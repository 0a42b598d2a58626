// One row of a tile as plainly as the reference computes it: products in order, then the steps and
// masks, then the softmax from the row's own largest score, then the values.
//
// For rows that the fast paths cannot compute: numbers near the limits of T's range, and infinities
// and NaN among keys and values. Masked keys are never read.
#pragma once

#include "core/kernels/score_steps.hpp"

namespace attn::kernels {
namespace {

template <class T>
class PlainRow {
    /// Keys whose products are summed side by side.
    static constexpr std::size_t group = 8;

public:
    /// `vector_lanes`: lanes of the vectors that the tile's strips refer to.
    PlainRow(Tile<T>& tile, std::size_t lane, std::size_t vector_lanes)
        : t_(tile), lane_(lane), vector_(lane / vector_lanes) {}

    /// Writes context, weights, shift and sum.
    // A separate function: inlined, it slows the fast paths.
    [[gnu::noinline, gnu::cold]] void run() {
        T peak = t_.has_sink ? t_.sink[lane_] : masked_score<T>;
        bool sees = false;
        each_key([&](std::size_t, T score) {
            // NaN stays, so that -Infinity is the peak only of scores that all overflowed.
            peak = score <= peak || peak != peak ? peak : score;
            sees = true;
        });
        double sum = t_.has_sink ? power(t_.sink[lane_], peak) : 0;
        each_key([&](std::size_t, T score) { sum += power(score, peak); });
        t_.shift[lane_] = sees || t_.has_sink ? peak : 0;
        t_.sum[lane_] = static_cast<T>(sum);

        T* context = t_.context[lane_];
        T* weights = t_.weights[0] == nullptr ? nullptr : t_.weights[lane_];
        for (std::size_t c = 0; c < t_.d_v; ++c) context[c] = 0;
        for (std::size_t k = 0; weights != nullptr && k < t_.kv_len; ++k) weights[k] = 0;
        each_key([&](std::size_t key, T score) {
            const bool kept = t_.keep == nullptr || (t_.keep[key] >> lane_ & 1) != 0;
            const double weight = power(score, peak) / sum * (kept ? t_.kept_value : 0);
            if (weights != nullptr) weights[key] = static_cast<T>(weight);
            const T* value = t_.value + key * t_.value_stride;
            for (std::size_t c = 0; c < t_.d_v; ++c)
                context[c] += static_cast<T>(weight) * value[c];
        });
    }

    /// visit(key, score) for every key visible to the row, in order.
    template <class Visit>
    void each_key(Visit visit) const {
        each_product(t_.strips, t_.strips + t_.strip_count, [&](std::size_t key, T product) {
            visit(key, modified(t_, lane_, key, product));
        });
    }

    /// The same of some strips, with the products of query and keys.
    template <class Visit>
    void each_product(const Strip* first, const Strip* end, Visit visit) const {
        for (const Strip* strip = first; strip != end; ++strip) {
            const Strip& s = *strip;
            if (vector_ < s.first_vector || vector_ >= s.end_vector) continue;
            std::size_t seen[group], count = 0;
            const auto visit_group = [&] {
                T score[group] = {};
                products(seen, count, score);
                for (std::size_t j = 0; j < count; ++j) visit(seen[j], score[j]);
                count = 0;
            };
            for (std::size_t k = 0; k < s.keys; ++k) {
                if (!sees(s, k)) continue;
                seen[count++] = s.first_key + k;
                if (count == group) visit_group();
            }
            visit_group();
        }
    }

    /// Differences are rounded as T's are.
    static double power(T score, T peak) {
        const T below = score - peak;
        return __builtin_exp(static_cast<double>(below));
    }

private:
    bool sees(const Strip& s, std::size_t k) const {
        if (s.visible != nullptr && (s.visible[k] >> lane_ & 1) == 0) return false;
        for (std::size_t i = 0; i < t_.step_count; ++i)
            if (t_.steps[i].kind == StepKind::bias &&
                bias_of(t_.steps[i], lane_, s.first_key + k) == masked_score<T>)
                return false;
        return true;
    }

    void products(const std::size_t* keys, std::size_t count, T* sum) const {
        if (count == 0) return;
        const T* key[group];
        for (std::size_t j = 0; j < group; ++j)
            key[j] = t_.key + keys[j < count ? j : 0] * t_.key_stride;
        for (std::size_t i = 0; i < t_.d_k; ++i)
            for (std::size_t j = 0; j < group; ++j) sum[j] += t_.query[lane_][i] * key[j][i];
    }

    Tile<T>& t_;
    std::size_t lane_, vector_;
};

}  // namespace
}  // namespace attn::kernels
