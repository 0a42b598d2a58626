// Sums over the scores and weights of a tile of queries, by row and by key: no (q, k) array and no
// product with the values.
//
// As in tile_attention.hpp queries are in the lanes, and rows that leave T's range are computed
// again by plain_row.hpp. The shift of a row is its largest score so far, so that sums of
// e^(score - shift) times a difference of scores do not cancel.
#pragma once

#include "core/kernels/fetch_ahead.hpp"
#include "core/kernels/plain_row.hpp"
#include "core/kernels/tile_blocks.hpp"

namespace attn::kernels {
namespace {

/// The keys of a strip.
template <class T>
Rows<T, false> keys_of(const Tile<T>& t, const Strip& s) {
    return {t.key + s.first_key * t.key_stride, t.key_stride};
}

template <class V>
class TotalRows {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, N = V::tile_vectors, L = W * N;
    /// Sums of a strip in each lane, added side by side.
    static constexpr std::size_t partial = 4;

public:
    TotalRows(Tile<T>& tile, RowTotals<T>& totals)
        : t_(tile), to_(totals), query_(tile.scratch), scores_(tile.weights_buffer) {}

    void run() {
        pack<V>(t_.query, t_.lanes, t_.d_k, t_.query_factor, query_);
        to_.stride = L;
        to_.vector_lanes = W;
        // Differences from the least finite shift are -Infinity for a masked score, not NaN.
        for (std::size_t l = 0; l < L; l += W) {
            V::set(min_score<T>).store(to_.peak + l);
            V::set(0).store(to_.sum + l);
            V::set(0).store(to_.score_sum + l);
            V::set(0).store(to_.distance_sum + l);
        }
        for (TileBlocks blocks(t_); blocks.next() != no_block;) {
            const BlockStrips block = blocks.take();
            add_block(block.first, block.end);
        }
        finish();
    }

private:
    T* scores_of(const Strip& s) const { return scores_ + s.first_key % block_keys * L; }

    void add_block(const Strip* first, const Strip* end) {
        T shift[L];
        for (std::size_t l = 0; l < L; l += W) V::load(to_.peak + l).store(shift + l);
        for (const Strip* s = first; s != end; ++s) score(*s);
        raise_shifts(shift);
        for (const Strip* s = first; s != end; ++s) {
            if (to_.wants_scores && to_.wants_distances)
                add<true, true>(*s);
            else if (to_.wants_scores)
                add<true, false>(*s);
            else if (to_.wants_distances)
                add<false, true>(*s);
            else
                add<false, false>(*s);
        }
    }

    void score(const Strip& s) {
        T peak[L];
        for (std::size_t l = 0; l < L; l += W) V::set(masked_score<T>).store(peak + l);
        score_strip<V>(t_, s, keys_of(t_, s), t_.d_k, query_, scores_of(s), peak);
        for (std::size_t l = s.first_vector * W; l < s.end_vector * W; l += W) {
            const V highest = V::load(peak + l);
            V::max(highest, V::load(to_.peak + l)).store(to_.peak + l);
            if (to_.offer != nullptr && V::any_above(highest, V::load(to_.threshold + l)))
                to_.offer(to_.taker, scores_of(s) + l, peak + l, l, s.first_key, s.keys);
        }
    }

    /// Earlier sums become relative to the new peaks.
    void raise_shifts(const T* shift) {
        for (std::size_t l = 0; l < L; l += W) {
            const V old = V::load(shift + l), next = V::load(to_.peak + l);
            if (!V::any_above(next, old)) continue;
            const V factor = rescaling(old, next);
            const V sum = V::load(to_.sum + l);
            const V fall = V::where_above(sum, V::set(0), V::sub(old, next), V::set(0));
            V::mul(V::fma(sum, fall, V::load(to_.score_sum + l)), factor).store(to_.score_sum + l);
            V::mul(V::load(to_.distance_sum + l), factor).store(to_.distance_sum + l);
            V::mul(sum, factor).store(to_.sum + l);
        }
    }

    template <bool scores, bool distances>
    void add(const Strip& s) {
        for (std::size_t v = s.first_vector; v < s.end_vector; ++v) {
            const T* column = scores_of(s) + v * W;
            const V shift = V::load(to_.peak + v * W);
            T from[W] = {};
            for (std::size_t l = 0; distances && l < W; ++l)
                from[l] = static_cast<T>(static_cast<std::ptrdiff_t>(s.first_key) -
                                         t_.position[v * W + l]);
            const V first = V::load(from);
            V sum[partial], score_sum[partial], distance_sum[partial];
            for (std::size_t i = 0; i < partial; ++i)
                sum[i] = score_sum[i] = distance_sum[i] = V::set(0);
            const auto add_key = [&](std::size_t k, std::size_t i) {
                const V below = V::sub(V::load(column + k * L), shift);
                const V weight = exponential(below);
                sum[i] = V::add(sum[i], weight);
                // Masked keys are infinitely far below; from here on every weight is 0.
                if constexpr (scores)
                    score_sum[i] = V::fma(weight, V::max(below, V::set(T(-0x1p20))), score_sum[i]);
                if constexpr (distances)
                    distance_sum[i] = V::fma(
                        weight, V::abs(V::add(first, V::set(static_cast<T>(k)))), distance_sum[i]);
            };
            std::size_t k = 0;
            for (; k + partial <= s.keys; k += partial)
#pragma GCC unroll 4
                for (std::size_t i = 0; i < partial; ++i) add_key(k + i, i);
            for (; k < s.keys; ++k) add_key(k, 0);
            add_to(to_.sum + v * W, sum);
            if constexpr (scores) add_to(to_.score_sum + v * W, score_sum);
            if constexpr (distances) add_to(to_.distance_sum + v * W, distance_sum);
        }
    }

    static void add_to(T* total, const V (&part)[partial]) {
        const V sum = V::add(V::add(part[0], part[1]), V::add(part[2], part[3]));
        V::add(V::load(total), sum).store(total);
    }

    void finish() {
        to_.out_of_range = 0;
        for (std::size_t l = 0; l < t_.lanes; ++l) {
            to_.sum[l] *= T(1 / weight_unit);
            to_.score_sum[l] *= T(1 / weight_unit);
            to_.distance_sum[l] *= T(1 / weight_unit);
            const T zero = (to_.sum[l] + to_.score_sum[l] + to_.distance_sum[l]) * 0;
            if (zero != 0 || !(to_.sum[l] > 0)) to_.out_of_range |= std::uint64_t{1} << l;
        }
    }

    Tile<T>& t_;
    RowTotals<T>& to_;
    T *query_, *scores_;
};

/// For each key of a strip, a vector of partial sums and one of largest weights, to be reduced
/// across their lanes.
template <class V>
struct KeyVectors {
    typename V::Scalar sum[block_keys * V::lanes], most[block_keys * V::lanes];
};

template <class V>
class TotalKeys {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, N = V::tile_vectors, L = W * N;

public:
    TotalKeys(Tile<T>& tile, const KeyTotals<T>& totals, KeyVectors<V>& keys)
        : t_(tile), to_(totals), keys_(keys), query_(tile.scratch), scores_(tile.weights_buffer),
          fetch_(tile), blocks_(tile) {}

    void start(std::size_t share, std::size_t shares) {
        pack<V>(t_.query, t_.lanes, t_.d_k, t_.query_factor, query_);
        fetch_.start(share, shares);
    }

    std::size_t next_block() const { return blocks_.next(); }

    void compute_block() {
        const BlockStrips block = blocks_.take();
        fetch_.start_block(block.end);
        for (const Strip* s = block.first; s != block.end; ++s) {
            add_strip(*s);
            for (std::size_t k = 0; k < s->keys; k += W) reduce(*s, k);
        }
    }

private:
    /// The target of a product that adds a tile's weights while its scores are in the first-level
    /// cache.
    struct Add {
        const TotalKeys& in;
        const Strip& strip;

        void begin(std::size_t row, std::size_t rows) const {
            const std::size_t key = (strip.first_key + row) % block_keys;
            in.fetch_.rows(key, key + rows);
        }
        V start(std::size_t, std::size_t) const { return V::set(0); }

        template <std::size_t R, std::size_t M>
        void finish(std::size_t row, V (&score)[R][M]) const {
            T* tile = in.scores_ + row * L + strip.first_vector * W;
#pragma GCC unroll 16
            for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
                for (std::size_t n = 0; n < M; ++n) score[r][n].store(tile + r * L + n * W);
            in.template add<R>(strip, row);
        }
    };

    void add_strip(const Strip& s) {
        if (has_steps(t_)) {
            T peak[L];
            for (std::size_t l = 0; l < L; l += W) V::set(0).store(peak + l);
            score_strip<V>(t_, s, keys_of(t_, s), t_.d_k, query_, scores_, peak);
            for (std::size_t k = 0; k < s.keys; ++k) add<1>(s, k);
        } else {
            multiply<V>(s.end_vector - s.first_vector, s.keys, keys_of(t_, s),
                        Vectors<T>{query_ + s.first_vector * W, L}, t_.d_k, Add{*this, s});
        }
    }

    /// The vectors of R keys from the strip's k-th on become one vector per key, of sums and of
    /// largest weights.
    template <std::size_t R>
    void add(const Strip& s, std::size_t k) const {
        V sum[R], most[R];
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r) sum[r] = most[r] = V::set(0);
#pragma GCC unroll 1
        for (std::size_t v = s.first_vector; v < s.end_vector; ++v) {
            const V shift = V::load(to_.shift + v * W), factor = V::load(to_.factor + v * W);
            const T* column = scores_ + k * L + v * W;
#pragma GCC unroll 16
            for (std::size_t r = 0; r < R; ++r) {
                const std::uint64_t seen =
                    s.visible == nullptr ? to_.lanes : to_.lanes & s.visible[k + r];
                const V power = exponential(V::sub(V::load(column + r * L), shift));
                const V weight = V::where(seen >> (v * W), V::mul(power, factor), V::set(0));
                sum[r] = V::add(sum[r], weight);
                most[r] = V::max(weight, most[r]);
            }
        }
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r) {
            sum[r].store(keys_.sum + (k + r) * W);
            most[r].store(keys_.most + (k + r) * W);
        }
    }

    /// W keys of the strip from the k-th on.
    void reduce(const Strip& s, std::size_t k) const {
        const std::size_t filled = s.keys - k < W ? s.keys - k : W, first = s.first_key + k;
        if (to_.sum != nullptr) {
            T sums[W];
            fold(keys_.sum + k * W, filled, [](V a, V b) { return V::add(a, b); }).store(sums);
            for (std::size_t i = 0; i < filled; ++i)
                to_.sum[first + i] += static_cast<double>(sums[i]);
        }
        if (to_.most != nullptr) {
            const V most = fold(keys_.most + k * W, filled, [](V a, V b) { return V::max(a, b); });
            V::max(most, V::load_first(to_.most + first, filled))
                .store_first(to_.most + first, filled);
        }
    }

    template <class Combine>
    static V fold(const T* rows, std::size_t filled, Combine combine) {
        V key[W];
        for (std::size_t i = 0; i < W; ++i) key[i] = V::load(rows + (i < filled ? i : 0) * W);
        V::transpose(key);
#pragma GCC unroll 8
        for (std::size_t half = W / 2; half != 0; half /= 2)
#pragma GCC unroll 16
            for (std::size_t i = 0; i < half; ++i) key[i] = combine(key[i], key[i + half]);
        return key[0];
    }

    Tile<T>& t_;
    const KeyTotals<T>& to_;
    KeyVectors<V>& keys_;
    T *query_, *scores_;
    FetchAhead<T> fetch_;
    TileBlocks blocks_;
};

template <class V, class T = typename V::Scalar>
void total_rows(Tile<T>& tile, RowTotals<T>& totals) noexcept {
    TotalRows<V>(tile, totals).run();
}

template <class V, class T = typename V::Scalar>
void total_keys(Tile<T>* tiles, const KeyTotals<T>* totals, std::size_t count) noexcept {
    KeyVectors<V> keys;
    if (count == 1) {
        TotalKeys<V> alone(*tiles, *totals, keys);
        return run_tiles(&alone, 1);
    }
    static_assert(max_tiles_per_item == 4);
    TotalKeys<V> group[] = {{tiles[0], totals[0], keys},
                            {tiles[1], totals[1], keys},
                            {tiles[2], totals[2], keys},
                            {tiles[3], totals[3], keys}};
    run_tiles(group, max_tiles_per_item);
}

template <class V, class T = typename V::Scalar>
void visit_row(Tile<T>& tile, std::size_t lane, void* visitor,
               void (*visit)(void* visitor, std::size_t key, T score)) noexcept {
    PlainRow<T>(tile, lane, V::lanes).each_key([&](std::size_t key, T score) {
        visit(visitor, key, score);
    });
}

}  // namespace
}  // namespace attn::kernels
