// The backward pass of one row, as plainly as PlainRow computes its weights, for rows that the fast
// path cannot compute.
#pragma once

#include "core/kernels/plain_row.hpp"

namespace attn::kernels {
namespace {

/// A row's largest score, the sum of its powers, and the weighted mean of its weights' gradients.
template <class T>
struct PlainSums {
    T peak, mean;
    double sum;
};

template <class T>
class PlainBackward {
public:
    PlainBackward(Tile<T>& tile, RowGradients<T>& rows, std::size_t lane, std::size_t vector_lanes,
                  PlainSums<T>& sums)
        : t_(tile), row_(tile, lane, vector_lanes), to_(rows), context_(rows.context[lane]),
          lane_(lane), of_(sums) {}

    /// Computes the sums and the sink's gradient.
    // Separate functions: inlined, they slow the fast path.
    [[gnu::noinline, gnu::cold]] void sum() {
        of_ = {t_.has_sink ? t_.sink[lane_] : masked_score<T>, 0, 0};
        row_.each_key([&](std::size_t, T score) {
            of_.peak = score <= of_.peak || of_.peak != of_.peak ? of_.peak : score;
        });
        const double sink = t_.has_sink ? PlainRow<T>::power(t_.sink[lane_], of_.peak) : 0;
        of_.sum = sink;
        row_.each_key(
            [&](std::size_t, T score) { of_.sum += PlainRow<T>::power(score, of_.peak); });
        double mean = 0;
        row_.each_key([&](std::size_t key, T score) {
            mean += static_cast<double>(weight(score)) * static_cast<double>(by_weight(key));
        });
        of_.mean = static_cast<T>(mean);
        to_.sink[lane_] = -sink / of_.sum * mean;
    }

    /// take(key, weight after dropout, gradient of the product of query and key) for every visible
    /// key of some strips.
    template <class Take>
    [[gnu::noinline, gnu::cold]] void each_key(const Strip* first, const Strip* end,
                                               Take take) const {
        row_.each_product(first, end, [&](std::size_t key, T product) {
            T slope = 1, scale = 1;
            for (std::size_t i = 0; i < t_.step_count; ++i) {
                const Step<T>& step = t_.steps[i];
                if (step.kind == StepKind::scale) scale = step.number[lane_];
                if (step.kind == StepKind::softcap && step.number[lane_] != 0) {
                    const auto x = static_cast<double>(product / step.number[lane_]);
                    slope = static_cast<T>(1 - __builtin_tanh(x) * __builtin_tanh(x));
                }
                product = apply_plainly(step, t_, lane_, key, product);
            }
            const T p = weight(product);
            take(key, p * kept(key), p * (by_weight(key) - of_.mean) * slope * scale);
        });
    }

    /// Adds the infinities and NaN of the context's gradient to the gradients of the strips'
    /// values: the product leaves them out, since 0 times them is NaN, also for masked pairs.
    void add_infinite(const Strip* first, const Strip* end, T* value) const {
        for (std::size_t c = 0; c < t_.d_v; ++c)
            if (context_[c] - context_[c] != 0)
                each_key(first, end, [&](std::size_t key, T weight, T) {
                    value[key * t_.d_v + c] += weight * context_[c];
                });
    }

private:
    T weight(T score) const {
        return static_cast<T>(PlainRow<T>::power(score, of_.peak) / of_.sum);
    }

    T kept(std::size_t key) const {
        if (t_.keep == nullptr) return 1;
        return (t_.keep[key] >> lane_ & 1) != 0 ? static_cast<T>(t_.kept_value) : T{0};
    }

    T by_weight(std::size_t key) const {
        if (kept(key) == 0) return 0;
        const T* value = t_.value + key * t_.value_stride;
        T sum = 0;
        for (std::size_t c = 0; c < t_.d_v; ++c) sum += context_[c] * value[c];
        return sum * kept(key);
    }

    Tile<T>& t_;
    PlainRow<T> row_;
    RowGradients<T>& to_;
    const T* context_;
    std::size_t lane_;
    PlainSums<T>& of_;
};

}  // namespace
}  // namespace attn::kernels
