// The fused operator for very few queries, as in decoding: each row separately, with keys or
// columns in the lanes, so that keys and values are read at the speed of memory.
//
// A dot product has `parts` sums, the same number for every instruction set, that are folded in
// halves. The rest is as in tile_attention.hpp: weights relative to a shift, rows out of range by
// plain_row.hpp.
#pragma once

#include "core/kernels/online_softmax.hpp"
#include "core/kernels/plain_row.hpp"
#include "core/kernels/product.hpp"

namespace attn::kernels {
namespace {

template <class V>
class RowAttention {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes;
    static constexpr std::size_t parts = 64 / sizeof(T), vectors_of_parts = parts / W;
    /// Keys whose sums fit registers together.
    static constexpr std::size_t keys_at_once = vectors_of_parts == 1 ? W : W < 4 ? W : 4;

public:
    explicit RowAttention(Tile<T>& tile)
        : t_(tile), d_k_((t_.d_k + parts - 1) / parts * parts), query_(tile.scratch),
          weights_(tile.weights_buffer) {}

    void run() {
        for (std::size_t row = 0; row < t_.lanes; ++row) {
            if (t_.scores[0] != nullptr) write_scores(row);
            attend_row(row);
            finish_row(row);
        }
    }

private:
    bool keeps_weights() const { return t_.weights[0] != nullptr; }

    bool keeps(std::size_t row, std::size_t key) const { return (t_.keep[key] >> row & 1) != 0; }

    void load_query(std::size_t row, T unit) {
        for (std::size_t i = 0; i < d_k_; ++i)
            query_[i] = i < t_.d_k ? t_.query[row][i] * unit : T{0};
    }

    void write_scores(std::size_t row) {
        load_query(row, 1);
        const Strip all{0, t_.kv_len, 0, 1, nullptr, true};
        for (std::size_t k = 0; k < t_.kv_len; k += W)
            dots(all, k).store_first(t_.scores[row] + k, t_.kv_len - k < W ? t_.kv_len - k : W);
    }

    void attend_row(std::size_t row) {
        load_query(row, t_.query_factor);
        for (std::size_t c = 0; c < t_.d_v; ++c) t_.context[row][c] = 0;
        if (keeps_weights())
            for (std::size_t k = 0; k < t_.kv_len; ++k) t_.weights[row][k] = masked_score<T>;
        shift_ = sum_ = 0;
        for (std::size_t i = 0; i < t_.strip_count; ++i) {
            const Strip& s = t_.strips[i];
            if (row / W >= s.first_vector && row / W < s.end_vector) attend_strip(s, row);
        }
    }

    void attend_strip(const Strip& s, std::size_t row) {
        T* scores = weights_;
        for (std::size_t k = 0; k < s.keys; k += W) dots(s, k).store(scores + k);
        modify_row<V>(t_, s, row, scores);
        if (keeps_weights())
            for (std::size_t k = 0; k < s.keys; ++k) t_.weights[row][s.first_key + k] = scores[k];
        update_shift(row, peak_of(scores, s.keys));
        sum_ += exponentiate(s, scores);
        if (t_.keep != nullptr)
            for (std::size_t k = 0; k < s.keys; ++k)
                if (!keeps(row, s.first_key + k)) scores[k] = 0;
        mix(s, row);
    }

    /// Dot products of the query with W keys of the strip from the k-th on; past its end, 0.
    V dots(const Strip& s, std::size_t k) const {
        const T* key = t_.key + (s.first_key + k) * t_.key_stride;
        V dot[W];
        if (k + W <= s.keys) {
#pragma GCC unroll 16
            for (std::size_t i = 0; i < W; i += keys_at_once)
                dot_keys<keys_at_once>(key + i * t_.key_stride, dot + i);
        } else {
            for (std::size_t i = 0; i < W; ++i) dot[i] = V::set(0);
            for (std::size_t i = 0; i < s.keys - k; ++i)
                dot_keys<1>(key + i * t_.key_stride, dot + i);
        }
        V::transpose(dot);
#pragma GCC unroll 8
        for (std::size_t half = W / 2; half != 0; half /= 2)
#pragma GCC unroll 16
            for (std::size_t i = 0; i < half; ++i) dot[i] = V::add(dot[i], dot[i + half]);
        return dot[0];
    }

    /// Sums of the query times several keys, folded to one vector per key.
    template <std::size_t keys>
    inline void dot_keys(const T* key, V* dot) const {
        V sum[keys][vectors_of_parts];
#pragma GCC unroll 16
        for (std::size_t j = 0; j < keys; ++j)
#pragma GCC unroll 16
            for (std::size_t m = 0; m < vectors_of_parts; ++m) sum[j][m] = V::set(0);
        std::size_t i = 0;
        for (; i + parts <= t_.d_k; i += parts)
#pragma GCC unroll 16
            for (std::size_t m = 0; m < vectors_of_parts; ++m) {
                const V query = V::load(query_ + i + m * W);
#pragma GCC unroll 16
                for (std::size_t j = 0; j < keys; ++j)
                    sum[j][m] =
                        V::fma(query, V::load(key + j * t_.key_stride + i + m * W), sum[j][m]);
            }
        if (i < t_.d_k)
#pragma GCC unroll 16
            for (std::size_t m = 0; m < vectors_of_parts; ++m) {
                const std::size_t at = i + m * W, left = t_.d_k > at ? t_.d_k - at : 0;
                const V query = V::load(query_ + at);
#pragma GCC unroll 16
                for (std::size_t j = 0; j < keys; ++j) {
                    const T* from = left != 0 ? key + j * t_.key_stride + at : key;
                    sum[j][m] = V::fma(query, V::load_first(from, left < W ? left : W), sum[j][m]);
                }
            }
#pragma GCC unroll 16
        for (std::size_t j = 0; j < keys; ++j) {
#pragma GCC unroll 16
            for (std::size_t half = vectors_of_parts / 2; half != 0; half /= 2)
#pragma GCC unroll 16
                for (std::size_t m = 0; m < half; ++m)
                    sum[j][m] = V::add(sum[j][m], sum[j][m + half]);
            dot[j] = sum[j][0];
        }
    }

    static T peak_of(const T* scores, std::size_t keys) {
        V peak = V::set(masked_score<T>);
        for (std::size_t k = 0; k < keys; k += W) peak = V::max(V::load(scores + k), peak);
        T lanes[W];
        peak.store(lanes);
        T most = lanes[0];
        for (T lane : lanes) most = lane > most ? lane : most;
        return most;
    }

    void update_shift(std::size_t row, T peak) {
        T updated[W], factor[W];
        next_shift(V::set(shift_), V::set(peak), V::set(sum_)).store(updated);
        if (updated[0] == shift_) return;
        rescaling(V::set(shift_), V::set(peak)).store(factor);
        shift_ = peak;
        sum_ *= factor[0];
        for (std::size_t c = 0; c < t_.d_v; ++c) t_.context[row][c] *= factor[0];
    }

    /// Scores to weights; their sum.
    T exponentiate(const Strip& s, T* scores) const {
        V sum[vectors_of_parts];
        for (V& part : sum) part = V::set(0);
        std::size_t m = 0;
        for (std::size_t k = 0; k < s.keys; k += W) {
            const V weight = exponential(V::sub(V::load(scores + k), V::set(shift_)));
            sum[m] = V::add(sum[m], weight);
            m = (m + 1) % vectors_of_parts;
            weight.store(scores + k);
        }
        for (std::size_t half = vectors_of_parts / 2; half != 0; half /= 2)
            for (std::size_t i = 0; i < half; ++i) sum[i] = V::add(sum[i], sum[i + half]);
        T lanes[W];
        sum[0].store(lanes);
        for (std::size_t half = W / 2; half != 0; half /= 2)
            for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
        return lanes[0];
    }

    void mix(const Strip& s, std::size_t row) const {
        const Rows<T, false> weights{weights_, block_keys};
        const T* value = t_.value + s.first_key * t_.value_stride;
        T* context = t_.context[row];
        std::size_t c = 0;
        while (t_.d_v - c >= W) {
            const std::size_t left = (t_.d_v - c) / W;
            const std::size_t vectors = left < V::tile_vectors ? left : V::tile_vectors;
            multiply<V>(vectors, 1, weights, Vectors<T>{value + c, t_.value_stride}, s.keys,
                        Store<V>{context + c, 0, context + c, 0});
            c += vectors * W;
        }
        if (c == t_.d_v) return;
        V last = V::load_first(context + c, t_.d_v - c);
        for (std::size_t k = 0; k < s.keys; ++k)
            last = V::fma(V::set(weights_[k]),
                          V::load_first(value + k * t_.value_stride + c, t_.d_v - c), last);
        last.store_first(context + c, t_.d_v - c);
    }

    bool is_finite(std::size_t row) const {
        for (std::size_t c = 0; c < t_.d_v; ++c)
            if (t_.context[row][c] - t_.context[row][c] != 0) return false;
        return sum_ - sum_ == 0;
    }

    void finish_row(std::size_t row) {
        if (t_.has_sink) {
            if (!(sum_ > 0)) shift_ = t_.sink[row];
            update_shift(row, t_.sink[row]);
            T term[W];
            exponential(V::set(t_.sink[row] - shift_)).store(term);
            sum_ += term[0];
        }
        if (!is_finite(row) || !(sum_ > 0)) return PlainRow<T>(t_, row, W).run();
        t_.shift[row] = shift_;
        t_.sum[row] = sum_ * T(1 / weight_unit);
        const T factor = static_cast<T>(t_.kept_value) / sum_;
        for (std::size_t c = 0; c < t_.d_v; ++c) t_.context[row][c] *= factor;
        if (keeps_weights()) write_weights(row, factor);
    }

    /// The row still holds scores.
    void write_weights(std::size_t row, T factor) const {
        T* weights = t_.weights[row];
        for (std::size_t k = 0; k < t_.kv_len; k += W) {
            const std::size_t filled = t_.kv_len - k < W ? t_.kv_len - k : W;
            const V weight =
                exponential(V::sub(V::load_first(weights + k, filled), V::set(shift_)));
            V::mul(weight, V::set(factor)).store_first(weights + k, filled);
        }
        for (std::size_t k = 0; t_.keep != nullptr && k < t_.kv_len; ++k)
            if (!keeps(row, k)) weights[k] = 0;
    }

    Tile<T>& t_;
    std::size_t d_k_;
    T *query_, *weights_;
    T shift_ = 0, sum_ = 0;
};

}  // namespace
}  // namespace attn::kernels
