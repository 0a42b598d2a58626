// The fused operator, softmax(scale Q K^T + bias) V, over one tile of queries: no (q, k) array.
//
// Queries are in the lanes of vectors, so every array of a tile is transposed: Q (d_k, L), scores
// and weights (key, L), context (d_v, L), with L the lanes of a tile. Keys and values are read in
// place, one number at a time, and applied to all lanes at once; maximum and sum run down the
// lanes. Weights are e^(score - shift) with a shift per lane that suits most rows from the start;
// those below 2^-105 of a row's largest may become 0. Rows that leave T's range are recomputed by
// plain_row.hpp.
//
// Sources: Milakov and Gimelshein 2018, arXiv 1805.02867 (the running maximum); Dao et al. 2022,
// arXiv 2205.14135 (blocks of keys).
#pragma once

#include "core/kernels/block_pairs.hpp"
#include "core/kernels/fetch_ahead.hpp"
#include "core/kernels/row_attention.hpp"
#include "core/kernels/tile_blocks.hpp"

namespace attn::kernels {
namespace {

template <class V>
class Attention {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, N = V::tile_vectors, L = W * N;
    static constexpr T minus_infinity = masked_score<T>;
    static constexpr bool paired = is_paired<V>;
    /// Rows of the product for the scores: the queries of so many stay in the first-level cache.
    static constexpr std::size_t steps_at_once = (std::size_t{32} << 10) / (L * sizeof(T));

public:
    Attention(Tile<T>& tile, BlockPairs<V>& block_pairs)
        : t_(tile), block_pairs_(block_pairs), fetch_(tile), query_(tile.scratch),
          context_(query_ + t_.d_k * L), softmax_(context_ + rows() * L),
          weights_(tile.weights_buffer), kept_shifts_(weights_ + kept_blocks() * block_keys * L),
          blocks_(tile) {}

    void start(std::size_t share, std::size_t shares) {
        if (t_.scores[0] != nullptr) write_scores();
        pack_queries(t_.query_factor);
        for (std::size_t i = 0; i < rows() * L; i += W) V::set(0).store(context_ + i);
        softmax_.start();
        fetch_.start(share, shares);
    }

    std::size_t next_block() const { return blocks_.next(); }

    void compute_block() {
        const BlockStrips block = blocks_.take();
        fetch_.start_block(block.end);
        if constexpr (paired) block_pairs_.convert(block.first->first_key / block_keys);
        attend_strips(block.first, block.end);
    }

    /// Divides by the sums and writes context, weights and sums; then recomputes the rows that are
    /// out of range.
    void finish() {
        if (t_.has_sink)
            softmax_.add_sinks(t_.sink, used_vectors() * W, scale_context(),
                               paired ? context_ + t_.d_v * L : nullptr);
        t_.out_of_range = lanes_out_of_range();
        T reciprocal[L];
        // Rounded weights are divided by their own sum, but for those that were dropped.
        const bool by_rounded = paired && t_.keep == nullptr;
        divide_by<V>(by_rounded ? context_ + t_.d_v * L : softmax_.sum(), t_, reciprocal);
        write_rows<false>(t_.context, context_, 0, t_.d_v, reciprocal);
        if (by_rounded) divide_by<V>(softmax_.sum(), t_, reciprocal);
        if (keeps_weights()) write_weights(reciprocal);
        V::finish_stores();
        for (std::size_t l = 0; l < t_.lanes; ++l) {
            t_.shift[l] = softmax_.shift()[l];
            t_.sum[l] = softmax_.sum()[l] * T(1 / weight_unit);
            if ((t_.out_of_range >> l & 1) != 0) PlainRow<T>(t_, l, W).run();
        }
    }

private:
    bool keeps_weights() const { return t_.weights[0] != nullptr; }
    std::size_t kept_blocks() const {
        return keeps_weights() ? (t_.kv_len + block_keys - 1) / block_keys : 1;
    }
    /// Of the context; the sum of the rounded weights follows.
    std::size_t rows() const { return t_.d_v + (paired ? 1 : 0); }
    std::size_t used_vectors() const { return (t_.lanes + W - 1) / W; }
    /// Lane l's weights of key k, at [k * L + l]; only the current block unless all are stored.
    T* weights_of(std::size_t key) const {
        return weights_ + (keeps_weights() ? key : key % block_keys) * L;
    }

    /// The same in pairs, of the current block.
    T* pairs_of(std::size_t key) const {
        if constexpr (paired) return block_pairs_.weights() + key % block_keys / 2 * L;
        return weights_of(key);
    }
    Rows<T, false> keys_from(std::size_t key) const {
        if constexpr (paired) return block_pairs_.keys_from(key);
        return {t_.key + key * t_.key_stride, t_.key_stride};
    }
    /// Of Q K^T.
    std::size_t steps() const { return paired ? (t_.d_k + 1) / 2 : t_.d_k; }

    /// Pairs of queries have the factor's sign alone, since it would round them: scores have it.
    void pack_queries(T factor) {
        const T sign = factor < 0 ? T(-1) : T{1};
        pack<V>(t_.query, t_.lanes, t_.d_k, paired ? sign : factor, query_);
        if constexpr (paired) pair_rows<V>(query_, t_.d_k, 0, used_vectors(), query_);
    }

    /// Q K^T without steps, over all keys.
    void write_scores() {
        pack_queries(T{1});
        for (std::size_t key = 0; key < t_.kv_len; key += block_keys) {
            if constexpr (paired) block_pairs_.convert(key / block_keys);
            const std::size_t keys = t_.kv_len - key < block_keys ? t_.kv_len - key : block_keys;
            multiply<V>(used_vectors(), keys, keys_from(key), Vectors<T>{query_, L}, steps(),
                        Store<V>{weights_, L, nullptr, 0});
            write_rows<true>(t_.scores, weights_, key, keys, nullptr);
        }
    }

    /// Columns of lanes [key][L] as the rows' elements [key, key + keys), times a factor per lane.
    /// `once`: they are not read again soon, so stores may bypass the caches.
    template <bool once>
    void write_rows(T* const* rows, const T* columns, std::size_t key, std::size_t keys,
                    const T* factors) const {
        for (std::size_t v = 0; v < used_vectors(); ++v) {
            const std::size_t left = t_.lanes - v * W;
            unpack<V, once>(columns + v * W, L, keys,
                            factors == nullptr ? V::set(1) : V::load(factors + v * W), rows + v * W,
                            key, left < W ? left : W);
        }
    }

    void attend_strips(const Strip* first, const Strip* end) {
        const bool whole = first->keys == block_keys && first->first_vector == 0 &&
                           first->end_vector == used_vectors();
        if (keeps_weights() && !whole) clear_block(first->first_key / block_keys * block_keys);
        if (has_steps(t_) || !guess_block(first, end)) weigh_block(first, end);
        for (const Strip* s = first; s != end; ++s) mix(*s);
        softmax_.end_block();
        if (keeps_weights()) {
            T* kept = kept_shifts_ + first->first_key / block_keys * L;
            for (std::size_t l = 0; l < L; l += W) V::load(softmax_.shift() + l).store(kept + l);
        }
    }

    /// Weights of a block with the shifts of earlier blocks, without a pass for the maximum; false
    /// if a shift is out of range.
    bool guess_block(const Strip* first, const Strip* end) {
        softmax_.start_block();
        for (const Strip* s = first; s != end; ++s)
            if (s->visible == nullptr && t_.keep == nullptr && !(paired && keeps_weights()))
                guess<false>(*s);
            else
                guess<true>(*s);
        return softmax_.holds(used_vectors() * W);
    }

    /// The target of a product that turns a tile's scores into weights while they are in registers.
    template <bool masked>
    struct Weigh {
        const Attention& in;
        const Strip& strip;
        bool begun;  ///< the first steps' sums are where the weights will be

        void begin(std::size_t row, std::size_t rows) const {
            const std::size_t key = (strip.first_key + row) % block_keys;
            in.fetch_.rows(key, key + rows);
        }
        V start(std::size_t row, std::size_t n) const {
            return begun ? V::load(in.weights_of(strip.first_key + row) +
                                   (strip.first_vector + n) * W)
                         : V::set(0);
        }

        template <std::size_t R, std::size_t M>
        void finish(std::size_t row, V (&score)[R][M]) const {
            const std::size_t key = strip.first_key + row, first_lane = strip.first_vector * W;
            alignas(64) T buffer[paired ? R * L : 1];
            T* tile = paired ? buffer : in.weights_of(key) + first_lane;
#pragma GCC unroll 16
            for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
                for (std::size_t n = 0; n < M; ++n) score[r][n].store(tile + r * L + n * W);
                    // From memory if registers cannot hold scores, sums and constants.
#pragma GCC unroll 1
            for (std::size_t n = 0; n < M; ++n)
                weigh<R>(row, key, first_lane + n * W, tile + n * W);
        }

        /// One vector of lanes, R keys.
        template <std::size_t R>
        void weigh(std::size_t row, std::size_t key, std::size_t lane, T* column) const {
            constexpr std::size_t sums = R < partial_sums ? R : partial_sums;
            const V shift = V::load(in.softmax_.shift() + lane), unit = score_factor<V>(in.t_);
            const V fall = paired ? V::sub(V::set(0), shift) : shift;
            V peak = paired ? V::set(minus_infinity) : V::load(in.softmax_.peak() + lane);
            V sum[sums], first = V::set(0);
            T* const pairs = in.pairs_of(key) + lane;
#pragma GCC unroll 16
            for (std::size_t i = 0; i < sums; ++i)
                sum[i] = V::load(in.softmax_.block_sum(key + i) + lane);
#pragma GCC unroll 16
            for (std::size_t r = 0; r < R; ++r) {
                V score = V::load(column + r * L);
                if (masked && strip.visible != nullptr)
                    score = V::where(strip.visible[row + r] >> lane, score, V::set(minus_infinity));
                peak = V::max(score, peak);
                V weight = exponential(paired ? V::fma(score, unit, fall) : V::sub(score, shift));
                sum[r % sums] = V::add(sum[r % sums], weight);
                if (masked && in.t_.keep != nullptr)
                    weight = V::where(in.t_.keep[key + r] >> lane, weight, V::set(0));
                if constexpr (paired) {
                    if (masked && in.keeps_weights()) weight.store(in.weights_of(key + r) + lane);
                    if (r % 2 == 1 || r + 1 == R)
                        V::pair(r % 2 == 1 ? first : weight, r % 2 == 1 ? weight : V::set(0))
                            .store(pairs + r / 2 * L);
                    first = weight;
                } else {
                    weight.store(column + r * L);
                }
            }
            if (paired) peak = V::max(V::mul(peak, unit), V::load(in.softmax_.peak() + lane));
            peak.store(in.softmax_.peak() + lane);
#pragma GCC unroll 16
            for (std::size_t i = 0; i < sums; ++i)
                sum[i].store(in.softmax_.block_sum(key + i) + lane);
        }
    };

    template <bool masked>
    void guess(const Strip& s) {
        const std::size_t vectors = s.end_vector - s.first_vector;
        const std::size_t all = steps(), pieces = (all + steps_at_once - 1) / steps_at_once;
        const std::size_t piece = (all + pieces - 1) / pieces;
        T* scores = weights_of(s.first_key) + s.first_vector * W;
        Rows<T, false> keys = keys_from(s.first_key);
        Vectors<T> queries{query_ + s.first_vector * W, L};
        std::size_t steps = all;
        for (; steps > piece; steps -= piece, keys.start += piece, queries.start += piece * L)
            multiply<V>(vectors, s.keys, keys, queries, piece,
                        Store<V>{scores, L, steps == all ? nullptr : scores, L});
        multiply<V>(vectors, s.keys, keys, queries, steps, Weigh<masked>{*this, s, steps != all});
    }

    /// Weights of a block step by step: scores, shifts, exponentials.
    void weigh_block(const Strip* first, const Strip* end) {
        softmax_.start_block();
        for (const Strip* s = first; s != end; ++s) score(*s);
        softmax_.update(used_vectors() * W, scale_context());
        for (const Strip* s = first; s != end; ++s) exponentiate(*s);
    }

    void clear_block(std::size_t key) {
        for (std::size_t i = 0; i < block_keys * L; i += W) V::set(0).store(weights_of(key) + i);
    }

    /// Scores of a strip, modified and masked, and their maximum in each lane.
    void score(const Strip& s) {
        score_strip<V>(t_, s, keys_from(s.first_key), steps(), query_, weights_of(s.first_key),
                       softmax_.peak());
    }

    auto scale_context() const {
        return [this](std::size_t lane, V factor) {
            for (std::size_t c = 0; c < rows(); ++c) {
                T* at = context_ + c * L + lane;
                V::mul(V::load(at), factor).store(at);
            }
        };
    }

    /// Scores become exponentials; those of dropped keys count in the sum and then become 0.
    void exponentiate(const Strip& s) {
        T* scores = weights_of(s.first_key);
        for (std::size_t v = s.first_vector; v < s.end_vector; ++v) {
            const V shift = V::load(softmax_.shift() + v * W);
            for (std::size_t k = 0; k < s.keys; ++k) {
                T* at = scores + k * L + v * W;
                V weight = exponential(V::sub(V::load(at), shift));
                T* sum = softmax_.block_sum(s.first_key + k) + v * W;
                V::add(V::load(sum), weight).store(sum);
                if (t_.keep != nullptr)
                    weight = V::where(t_.keep[s.first_key + k] >> (v * W), weight, V::set(0));
                weight.store(at);
            }
        }
        if constexpr (paired)
            pair_rows<V>(scores, s.keys, s.first_vector, s.end_vector, pairs_of(s.first_key));
    }

    /// Context += V^T P.
    void mix(const Strip& s) {
        T* context = context_ + s.first_vector * W;
        if constexpr (paired) {
            add_pairs<V>(pairs_of(s.first_key), (s.keys + 1) / 2, s.first_vector, s.end_vector,
                         context_ + t_.d_v * L);
            return multiply<V>(s.end_vector - s.first_vector, t_.d_v,
                               block_pairs_.values_from(s.first_key),
                               Vectors<T>{pairs_of(s.first_key) + s.first_vector * W, L},
                               (s.keys + 1) / 2, Store<V>{context, L, context, L});
        }
        multiply<V>(s.end_vector - s.first_vector, t_.d_v,
                    Rows<T, true>{t_.value + s.first_key * t_.value_stride, t_.value_stride},
                    Vectors<T>{weights_of(s.first_key) + s.first_vector * W, L}, s.keys,
                    Store<V>{context, L, context, L});
    }

    /// Bit l: lane l holds a number that is not finite, or its sum is 0. Its inputs are out of T's
    /// range, NaN or infinite, or a masked value is.
    std::uint64_t lanes_out_of_range() const {
        V zeros[N];  // side by side, as each is a chain
        for (std::size_t v = 0; v < N; ++v)
            zeros[v] = V::mul(V::load(softmax_.sum() + v * W), V::set(0));
        for (std::size_t c = 0; c < t_.d_v; ++c)
#pragma GCC unroll 16
            for (std::size_t v = 0; v < N; ++v)
                zeros[v] = V::fma(V::load(context_ + c * L + v * W), V::set(0), zeros[v]);
        std::uint64_t lanes = 0;
        for (std::size_t v = 0; v < used_vectors(); ++v) {
            T zero[W], total[W];
            zeros[v].store(zero);
            V::load(softmax_.sum() + v * W).store(total);
            for (std::size_t l = 0; l < W; ++l)
                if (zero[l] != 0 || !(total[l] > 0)) lanes |= std::uint64_t{1} << (v * W + l);
        }
        return lanes;
    }

    void write_weights(const T* reciprocal) {
        std::size_t written = 0;
        const auto write_zeros = [&](std::size_t end) {
            for (std::size_t l = 0; l < t_.lanes; ++l) {
                std::size_t k = written;
                for (; k + W <= end; k += W) V::set(0).store_once(t_.weights[l] + k);
                for (; k < end; ++k) t_.weights[l][k] = 0;
            }
        };
        for (std::size_t i = 0; i < t_.strip_count; ++i) {
            if (!t_.strips[i].ends_block) continue;
            const std::size_t block = t_.strips[i].first_key / block_keys;
            const std::size_t key = block * block_keys;
            const std::size_t end = key + block_keys < t_.kv_len ? key + block_keys : t_.kv_len;
            write_zeros(key);
            T factors[L];
            for (std::size_t l = 0; l < L; l += W)
                V::mul(V::load(reciprocal + l), rescaling(V::load(kept_shifts_ + block * L + l),
                                                          V::load(softmax_.shift() + l)))
                    .store(factors + l);
            write_rows<true>(t_.weights, weights_of(key), key, end - key, factors);
            written = end;
        }
        write_zeros(t_.kv_len);
    }

    Tile<T>& t_;
    BlockPairs<V>& block_pairs_;
    FetchAhead<T> fetch_;
    T *query_, *context_;
    OnlineSoftmax<V> softmax_;
    T *weights_, *kept_shifts_;
    TileBlocks blocks_;
};

template <class V>
void attend(Tile<typename V::Scalar>* tiles, std::size_t count) noexcept {
    if constexpr (!is_paired<V>)
        if (tiles->by_rows) return RowAttention<V>(*tiles).run();
    BlockPairs<V> pairs(*tiles);
    if (count == 1) {
        Attention<V> alone(*tiles, pairs);
        run_tiles(&alone, 1);
        return alone.finish();
    }
    static_assert(max_tiles_per_item == 4);
    Attention<V> group[] = {
        {tiles[0], pairs}, {tiles[1], pairs}, {tiles[2], pairs}, {tiles[3], pairs}};
    run_tiles(group, max_tiles_per_item);
    for (Attention<V>& tile : group) tile.finish();
}

}  // namespace
}  // namespace attn::kernels
