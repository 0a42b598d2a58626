// The backward pass of the fused operator over a few tiles of queries that share their keys: no (q, k)
// array, and five products, as many as with one.
//
// With P the weights, dP = dO V^T and D the row sums of P dP, dS = P (dP - D) gives dQ = dS K,
// dK = dS^T Q and dV = P^T dO. A first pass over the keys computes P and dP of the tiles, keeps them
// and sums; a second one has D and does the rest. If there are more keys than can be kept, the second
// pass computes both again. As in tile_attention.hpp queries are in the lanes: P and dS are
// (key, lanes), and Q and dO are copied twice, as (d, L) for the products over d, and as rows for
// those over the queries. An element of dK or dV adds the queries in their order, whatever the tiles.
//
// Sources: Dao 2023, arXiv 2307.08691, section 3.1 (backward pass).
#pragma once

#include "core/kernels/plain_backward.hpp"
#include "core/kernels/tile_blocks.hpp"

namespace attn::kernels {
namespace {

/// Elements of whole vectors.
template <class V>
constexpr std::size_t padded(std::size_t length) {
    return (length + V::lanes - 1) / V::lanes * V::lanes;
}

/// Row r of `out`, in whole vectors, is row_of(r) with 0 for what is not finite: such elements only
/// meet zeros, or have made everything NaN that they reach.
template <class V, class RowOf, class T = typename V::Scalar>
inline void copy_finite(std::size_t rows, std::size_t length, RowOf row_of, T* out) {
    constexpr std::size_t W = V::lanes;
    const V infinity = V::set(T(__builtin_huge_val()));
    for (std::size_t r = 0; r < rows; ++r, out += padded<V>(length))
        for (std::size_t c = 0; c < length; c += W) {
            const T* from = row_of(r) + c;
            const V x = length - c < W ? V::load_first(from, length - c) : V::load(from);
            V::where_above(infinity, V::abs(x), x, V::set(0)).store(out + c);
        }
}

/// Adds to rows in memory, of which the last vector may be a part. The 0 turns -0 into 0, so that
/// adding the zeros of masked pairs or leaving them out is the same.
template <class V>
struct AddRows {
    using T = typename V::Scalar;
    T* rows;
    std::size_t stride, columns;

    void begin(std::size_t, std::size_t) const {}
    V start(std::size_t row, std::size_t n) const {
        const T* at = rows + row * stride + n * V::lanes;
        return (n + 1) * V::lanes <= columns ? V::load(at)
                                             : V::load_first(at, columns - n * V::lanes);
    }
    template <std::size_t R, std::size_t N>
    void finish(std::size_t row, V (&sum)[R][N]) const {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
            for (std::size_t n = 0; n < N; ++n) {
                T* at = rows + (row + r) * stride + n * V::lanes;
                const V x = V::add(sum[r][n], V::set(0));
                if ((n + 1) * V::lanes <= columns)
                    x.store(at);
                else
                    x.store_first(at, columns - n * V::lanes);
            }
    }
};

/// rows[r] += sum_s a[r][s] b[s], in panels of vectors of about the same width.
template <class V, class T = typename V::Scalar>
inline void add_product(std::size_t rows, Rows<T, false> a, Vectors<T> b, std::size_t steps,
                        T* out, std::size_t columns) {
    constexpr std::size_t W = V::lanes;
    const std::size_t vectors = padded<V>(columns) / W;
    const std::size_t panels = (vectors + V::tile_vectors - 1) / V::tile_vectors;
    for (std::size_t i = 0, first = 0; i < panels; ++i) {
        const std::size_t end = vectors * (i + 1) / panels;
        multiply<V>(end - first, rows, a, Vectors<T>{b.start + first * W, b.stride}, steps,
                    AddRows<V>{out + first * W, columns, columns - first * W});
        first = end;
    }
}

/// What the tiles share: numbers of pairs in rows of all their lanes.
template <class T>
struct KeptPairs {
    T *weight, *gradient, *slope;  ///< by the weight, then by the score; slope null: no soft cap
    std::size_t stride, keys;

    KeptPairs from_lane(std::size_t lane) const {
        return {weight + lane, gradient + lane, slope == nullptr ? nullptr : slope + lane, stride,
                keys};
    }
};

template <class V>
class TileBackward {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;

public:
    /// `scratch` is moved past what the tile needs of its own.
    TileBackward(Tile<T>& tile, RowGradients<T>& rows, T*& scratch)
        : t_(tile), to_(rows), query_(take(scratch, tile.d_k * L)),
          context_(take(scratch, tile.d_v * L)), grad_query_(take(scratch, tile.d_k * L)),
          factor_(take(scratch, L)), mean_(take(scratch, L)), block_mean_(take(scratch, L)),
          scale_(take(scratch, L)), shift_(take(scratch, L)), reciprocal_(take(scratch, L)),
          softmax_(take(scratch, OnlineSoftmax<V>::size)),
          block_shifts_(take(scratch, (tile.kv_len + block_keys - 1) / block_keys * L)),
          blocks_(tile) {}

    /// `kept` begins at the tile's first lane.
    void start(const KeptPairs<T>& kept, T* scores) {
        kept_ = kept;
        scores_ = scores;
        pack<V>(t_.query, t_.lanes, t_.d_k, t_.query_factor, query_);
        pack<V>(to_.context, t_.lanes, t_.d_v, T{1}, context_);
        for (std::size_t i = 0; i < t_.d_k * L; i += W) V::set(0).store(grad_query_ + i);
        for (std::size_t l = 0; l < L; ++l) {
            mean_[l] = 0;
            scale_[l] = 1;
        }
        for (std::size_t i = 0; i < t_.step_count; ++i)
            if (t_.steps[i].kind == StepKind::scale)
                for (std::size_t l = 0; l < L; ++l) scale_[l] = t_.steps[i].number[l];
        // The weight of a row's only key is exactly 1, so that dP - D is 0.
        softmax_.start(-min_score<T>);
    }

    std::size_t next_block() const { return blocks_.next(); }

    /// First pass.
    void weigh_block(std::size_t first_kept) {
        const BlockStrips block = take_block(first_kept);
        softmax_.start_block();
        for (std::size_t l = 0; l < L; l += W) V::set(0).store(block_mean_ + l);
        for (const Strip* s = block.first; s != block.end; ++s) score(*s);
        softmax_.update(used_vectors() * W, scale_mean());
        T* const shifts = shifts_of(block);
        for (std::size_t l = 0; l < L; l += W) V::load(softmax_.shift() + l).store(shifts + l);
        for (const Strip* s = block.first; s != block.end; ++s) weigh(*s);
        softmax_.end_block();
        for (std::size_t l = 0; l < L; l += W)
            V::add(V::load(mean_ + l), V::load(block_mean_ + l)).store(mean_ + l);
    }

    /// Between the passes: D, and the rows to compute plainly.
    void finish_sums() {
        if (t_.has_sink) softmax_.add_sinks(t_.sink, used_vectors() * W, scale_mean());
        for (std::size_t l = 0; l < L; l += W) {
            const V sum = V::max(V::set(T(0x1p-60)), V::load(softmax_.sum() + l));
            V::div(V::set(1), sum).store(reciprocal_ + l);
            V::div(V::load(mean_ + l), sum).store(mean_ + l);
            V::load(softmax_.shift() + l).store(shift_ + l);
        }
        plain_ = 0;
        for (std::size_t l = 0; l < t_.lanes; ++l) {
            const T sum = softmax_.sum()[l];
            if ((sum + mean_[l]) * 0 != 0 || !(sum > 0)) {
                plain_ |= std::uint64_t{1} << l;
                plain_row(l).sum();
            } else if (t_.has_sink) {
                const double power = weight_unit * PlainRow<T>::power(t_.sink[l], shift_[l]);
                to_.sink[l] = -power / static_cast<double>(sum) * static_cast<double>(mean_[l]);
            }
        }
        blocks_ = TileBlocks(t_);
    }

    /// Second pass: weights and gradients by scores, and what they add to dQ. `key`: the block's
    /// keys, finite.
    BlockStrips differentiate_block(std::size_t first_kept, const T* key, bool again) {
        const BlockStrips block = take_block(first_kept);
        const T* const shifts = shifts_of(block);
        if (again) {
            for (std::size_t l = 0; l < L; l += W) V::load(shifts + l).store(softmax_.shift() + l);
            for (const Strip* s = block.first; s != block.end; ++s) {
                score(*s);
                weigh(*s);
            }
        }
        for (std::size_t l = 0; l < L; l += W)
            V::mul(rescaling(V::load(shifts + l), V::load(shift_ + l)), V::load(reciprocal_ + l))
                .store(factor_ + l);
        for (const Strip* s = block.first; s != block.end; ++s)
            for (std::size_t v = s->first_vector; v < s->end_vector; ++v) differentiate(*s, v * W);
        for (std::size_t l = 0; l < t_.lanes; ++l)
            if ((plain_ >> l & 1) != 0) differentiate_plainly(block, l);
        for (const Strip* s = block.first; s != block.end; ++s) {
            T* const to = grad_query_ + s->first_vector * W;
            multiply<V>(s->end_vector - s->first_vector, t_.d_k,
                        Rows<T, true>{key + s->first_key % block_keys * padded<V>(t_.d_k),
                                      padded<V>(t_.d_k)},
                        Vectors<T>{gradient_of(s->first_key) + s->first_vector * W, kept_.stride},
                        s->keys, Store<V>{to, L, to, L});
        }
        return block;
    }

    void add_infinite(const BlockStrips& block, T* value) {
        for (std::size_t l = 0; l < t_.lanes; ++l)
            if ((plain_ >> l & 1) != 0) plain_row(l).add_infinite(block.first, block.end, value);
    }

    void write_query() const {
        for (std::size_t v = 0; v < used_vectors(); ++v) {
            const std::size_t left = t_.lanes - v * W;
            unpack<V, false>(grad_query_ + v * W, L, t_.d_k, V::set(1), to_.query + v * W, 0,
                             left < W ? left : W);
        }
    }

    std::size_t used_vectors() const { return (t_.lanes + W - 1) / W; }

private:
    static T* take(T*& scratch, std::size_t count) {
        T* const taken = scratch;
        scratch += count;
        return taken;
    }

    BlockStrips take_block(std::size_t first_kept) {
        first_kept_ = first_kept;
        return blocks_.take();
    }

    T* shifts_of(const BlockStrips& block) const {
        return block_shifts_ + block.first->first_key / block_keys * L;
    }

    auto scale_mean() const {
        return [this](std::size_t lane, V factor) {
            V::mul(V::load(mean_ + lane), factor).store(mean_ + lane);
        };
    }

    T* weight_of(std::size_t key) const {
        return kept_.weight + (key - first_kept_) * kept_.stride;
    }
    T* gradient_of(std::size_t key) const {
        return kept_.gradient + (key - first_kept_) * kept_.stride;
    }
    T* scores_of(const Strip& s) const { return scores_ + s.first_key % block_keys * L; }

    void score(const Strip& s) const {
        Slopes<T> slopes;
        if (kept_.slope != nullptr)
            slopes = {kept_.slope + (s.first_key - first_kept_) * kept_.stride, kept_.stride};
        score_strip<V>(t_, s, query_, scores_of(s), softmax_.peak(), slopes);
    }

    /// Scores to weights relative to the shift, with their sums; the gradients by them.
    void weigh(const Strip& s) const {
        for (std::size_t l = s.first_vector * W; l < s.end_vector * W; l += W) {
            const V shift = V::load(softmax_.shift() + l);
            for (std::size_t k = 0; k < s.keys; ++k) {
                const V weight = exponential(V::sub(V::load(scores_of(s) + k * L + l), shift));
                T* sum = softmax_.block_sum(s.first_key + k) + l;
                V::add(V::load(sum), weight).store(sum);
                weight.store(weight_of(s.first_key + k) + l);
            }
        }
        const Rows<T, false> values{t_.value + s.first_key * t_.value_stride, t_.value_stride};
        const Vectors<T> context{context_ + s.first_vector * W, L};
        const std::size_t vectors = s.end_vector - s.first_vector;
        if (s.visible == nullptr && t_.keep == nullptr)
            multiply<V>(vectors, s.keys, values, context, t_.d_v, ByWeight<false>{*this, s});
        else
            multiply<V>(vectors, s.keys, values, context, t_.d_v, ByWeight<true>{*this, s});
    }

    /// The target of dP: 0 for masked and dropped pairs, and summed by the weights.
    template <bool masked>
    struct ByWeight {
        const TileBackward& in;
        const Strip& s;

        void begin(std::size_t, std::size_t) const {}
        V start(std::size_t, std::size_t) const { return V::set(0); }
        template <std::size_t R, std::size_t N>
        void finish(std::size_t row, V (&gradient)[R][N]) const {
            const std::size_t key = s.first_key + row;
#pragma GCC unroll 16
            for (std::size_t n = 0; n < N; ++n) {
                const std::size_t lane = (s.first_vector + n) * W;
                V mean = V::load(in.block_mean_ + lane);
#pragma GCC unroll 16
                for (std::size_t r = 0; r < R; ++r) {
                    V g = gradient[r][n];
                    if (masked && s.visible != nullptr)
                        g = V::where(s.visible[row + r] >> lane, g, V::set(0));
                    if (masked && in.t_.keep != nullptr)
                        g = V::where(in.t_.keep[key + r] >> lane,
                                     V::mul(g, V::set(static_cast<T>(in.t_.kept_value))),
                                     V::set(0));
                    mean = V::fma(V::load(in.weight_of(key + r) + lane), g, mean);
                    g.store(in.gradient_of(key + r) + lane);
                }
                mean.store(in.block_mean_ + lane);
            }
        }
    };

    /// P after dropout, and dS times the derivatives of the steps, of one vector of lanes.
    void differentiate(const Strip& s, std::size_t l) const {
        const V factor = V::load(factor_ + l), mean = V::load(mean_ + l),
                scale = V::load(scale_ + l);
        const V kept_value = V::set(static_cast<T>(t_.kept_value));
        T *weight = weight_of(s.first_key) + l, *gradient = gradient_of(s.first_key) + l;
        for (std::size_t k = 0; k < s.keys; ++k) {
            const std::size_t at = k * kept_.stride;
            V p = V::mul(V::load(weight + at), factor);
            V g = V::mul(p, V::sub(V::load(gradient + at), mean));
            if (kept_.slope != nullptr)
                g = V::mul(
                    g, V::load(kept_.slope + (s.first_key - first_kept_ + k) * kept_.stride + l));
            V::mul(g, scale).store(gradient + at);
            if (t_.keep != nullptr)
                p = V::where(t_.keep[s.first_key + k] >> l, V::mul(p, kept_value), V::set(0));
            p.store(weight + at);
        }
    }

    PlainBackward<T> plain_row(std::size_t lane) {
        return {t_, to_, lane, W, plain_sums_[lane]};
    }

    [[gnu::noinline, gnu::cold]] void differentiate_plainly(const BlockStrips& block,
                                                            std::size_t lane) {
        for (const Strip* s = block.first; s != block.end; ++s)
            for (std::size_t key = s->first_key; key < s->first_key + s->keys; ++key)
                weight_of(key)[lane] = gradient_of(key)[lane] = 0;
        plain_row(lane).each_key(block.first, block.end, [&](std::size_t key, T p, T g) {
            weight_of(key)[lane] = p;
            gradient_of(key)[lane] = g;
        });
    }

    Tile<T>& t_;
    RowGradients<T>& to_;
    T *query_, *context_, *grad_query_;
    T *factor_, *mean_, *block_mean_, *scale_, *shift_, *reciprocal_;
    OnlineSoftmax<V> softmax_;
    T* block_shifts_;
    TileBlocks blocks_;
    std::uint64_t plain_ = 0;  // lanes that are computed plainly
    PlainSums<T> plain_sums_[max_lanes];
    KeptPairs<T> kept_{};
    T* scores_ = nullptr;
    std::size_t first_kept_ = 0;
};

/// All tiles of a Backward.
template <class V>
class GroupBackward {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;

public:
    GroupBackward(const Backward<T>& b, TileBackward<V>* tiles, T* scratch)
        : b_(b), tiles_(tiles), d_k_(b.tiles->d_k), d_v_(b.tiles->d_v), scores_(scratch),
          key_(scores_ + block_keys * L), query_(key_ + block_keys * padded<V>(d_k_)),
          context_(query_ + b.count * L * padded<V>(d_k_)) {
        const std::size_t stride = b.count * L, pairs = b.kept_keys * stride;
        T* const kept = context_ + b.count * L * padded<V>(d_v_);
        kept_ = {kept, kept + pairs, has_softcap() ? kept + 2 * pairs : nullptr, stride,
                 b.kept_keys};
    }

    void run() {
        for (std::size_t i = 0; i < b_.count; ++i) {
            const Tile<T>& t = b_.tiles[i];
            tiles_[i].start(kept_.from_lane(i * L), scores_);
            copy_finite<V>(t.lanes, d_k_, [&](std::size_t r) { return t.query[r]; },
                           query_ + i * L * padded<V>(d_k_));
            copy_finite<V>(t.lanes, d_v_, [&](std::size_t r) { return b_.rows[i].context[r]; },
                           context_ + i * L * padded<V>(d_v_));
        }
        const std::size_t first = next_block();
        std::size_t blocks = 0;
        for (std::size_t block; (block = next_block()) != no_block; blocks = block - first + 1)
            for (std::size_t i = 0; i < b_.count; ++i)
                if (tiles_[i].next_block() == block) tiles_[i].weigh_block(kept_from(first, block));
        for (std::size_t i = 0; i < b_.count; ++i) tiles_[i].finish_sums();
        again_ = blocks * block_keys > kept_.keys;
        for (std::size_t block; (block = next_block()) != no_block;)
            add_block(block, kept_from(first, block));
        b_.leave(b_.order, no_block);
        for (std::size_t i = 0; i < b_.count; ++i) tiles_[i].write_query();
    }

private:
    bool has_softcap() const {
        for (std::size_t i = 0; i < b_.tiles->step_count; ++i)
            if (b_.tiles->steps[i].kind == StepKind::softcap) return true;
        return false;
    }

    std::size_t next_block() const {
        std::size_t block = no_block;
        for (std::size_t i = 0; i < b_.count; ++i)
            if (tiles_[i].next_block() < block) block = tiles_[i].next_block();
        return block;
    }

    /// The first key whose numbers are kept, at the computation of a block.
    std::size_t kept_from(std::size_t first, std::size_t block) const {
        return (block - (block - first) % (kept_.keys / block_keys)) * block_keys;
    }

    void add_block(std::size_t block, std::size_t first_kept) {
        const std::size_t key = block * block_keys, left = b_.tiles->kv_len - key,
                          keys = left < block_keys ? left : block_keys;
        copy_finite<V>(keys, d_k_,
                       [&](std::size_t r) {
                           return b_.tiles->key + (key + r) * b_.tiles->key_stride;
                       },
                       key_);
        b_.leave(b_.order, block);
        BlockStrips strips[max_tiles_per_item] = {};
        bool whole = true;
        std::size_t lanes = 0;
        for (std::size_t i = 0; i < b_.count; ++i) {
            lanes += b_.tiles[i].lanes;
            if (tiles_[i].next_block() != block) {
                whole = false;
                continue;
            }
            strips[i] = tiles_[i].differentiate_block(first_kept, key_, again_);
            const Strip& s = *strips[i].first;
            whole = whole && s.keys == keys && s.first_vector == 0 &&
                    s.end_vector == tiles_[i].used_vectors();
        }
        b_.enter(b_.order, block);
        if (whole) add(key, keys, (key - first_kept) * kept_.stride, 0, lanes);
        for (std::size_t i = 0; i < b_.count; ++i) {
            tiles_[i].add_infinite(strips[i], b_.value);
            for (const Strip* s = strips[i].first; !whole && s != strips[i].end; ++s) {
                const std::size_t used = b_.tiles[i].lanes, end = s->end_vector * W;
                add(s->first_key, s->keys, (s->first_key - first_kept) * kept_.stride,
                    i * L + s->first_vector * W,
                    i * L + (end < used ? end : used));
            }
        }
    }

    /// Adds dS^T Q and P^T dO over lanes [first, end) to the gradients by some keys and values.
    /// `kept`: where the numbers of the first key are.
    void add(std::size_t key, std::size_t keys, std::size_t kept, std::size_t first,
             std::size_t end) const {
        const std::size_t p_k = padded<V>(d_k_), p_v = padded<V>(d_v_), stride = kept_.stride;
        add_product<V>(keys, Rows<T, false>{kept_.gradient + kept + first, stride},
                       Vectors<T>{query_ + first * p_k, p_k}, end - first, b_.key + key * d_k_,
                       d_k_);
        add_product<V>(keys, Rows<T, false>{kept_.weight + kept + first, stride},
                       Vectors<T>{context_ + first * p_v, p_v}, end - first, b_.value + key * d_v_,
                       d_v_);
    }

    const Backward<T>& b_;
    TileBackward<V>* tiles_;
    std::size_t d_k_, d_v_;
    T *scores_, *key_, *query_, *context_;
    KeptPairs<T> kept_{};
    bool again_ = false;
};

template <class V>
void differentiate(const Backward<typename V::Scalar>& b) noexcept {
    typename V::Scalar* scratch = b.scratch;
    const auto tile = [&](std::size_t i) {
        return TileBackward<V>(b.tiles[i], b.rows[i], scratch);
    };
    const auto run = [&](TileBackward<V>* tiles) { GroupBackward<V>(b, tiles, scratch).run(); };
    static_assert(max_tiles_per_item == 4);
    if (b.count == 1) {
        TileBackward<V> tiles[] = {tile(0)};
        run(tiles);
    } else if (b.count == 2) {
        TileBackward<V> tiles[] = {tile(0), tile(1)};
        run(tiles);
    } else if (b.count == 3) {
        TileBackward<V> tiles[] = {tile(0), tile(1), tile(2)};
        run(tiles);
    } else {
        TileBackward<V> tiles[] = {tile(0), tile(1), tile(2), tile(3)};
        run(tiles);
    }
}

}  // namespace
}  // namespace attn::kernels
