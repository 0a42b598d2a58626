// The backward pass of the fused operator over one tile of queries: no (q, k) array.
//
// With P the weights, dO the context's gradient, dP = dO V^T and D the row sums of P dP:
// dS = P (dP - D), dQ = dS K, dK = dS^T Q and dV = P^T dO. A first pass over the keys computes P
// and dP, keeps them, a tile's rows, and sums; a second one has D and does the rest, so there are
// five products. If there are more keys than can be kept, the second pass computes both again. As
// in tile_attention.hpp queries are in the lanes: P and dS are (key, lanes), and Q and dO are
// copied twice, as (d, lanes) for products over d, and as rows for those over the queries.
//
// Sources: Dao 2023, arXiv 2307.08691, section 3.1 (backward pass).
#pragma once

#include "core/kernels/backward_products.hpp"
#include "core/kernels/plain_backward.hpp"
#include "core/kernels/tile_blocks.hpp"

namespace attn::kernels {
namespace {

template <class V>
class TileBackward {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;

public:
    explicit TileBackward(const Backward<T>& b)
        : b_(b), t_(*b.tile), scratch_(b.scratch), query_(take(t_.d_k * L)),
          context_(take(t_.d_v * L)), grad_query_(take(t_.d_k * L)),
          query_rows_(take(padded<V>(t_.d_k) * L)), context_rows_(take(padded<V>(t_.d_v) * L)),
          factor_(take(L)), mean_(take(L)), block_mean_(take(L)), scale_(take(L)), shift_(take(L)),
          reciprocal_(take(L)), softmax_(take(OnlineSoftmax<V>::size)),
          block_shifts_(take((t_.kv_len + block_keys - 1) / block_keys * L)),
          scores_(take(block_keys * L)), dropped_(take(block_keys * L)),
          by_score_(take(block_keys * L)), has_softcap_(step_of(StepKind::softcap) != nullptr),
          kept_(take(b.kept_keys * numbers_per_pair(has_softcap_) * L)), blocks_(t_) {}

    void run() {
        start();
        const std::size_t first = blocks_.next();
        std::size_t end = first;
        while (blocks_.next() != no_block) {
            end = blocks_.next() + 1;
            weigh_block(take_block(first));
        }
        finish_sums();
        blocks_ = TileBlocks(t_);
        const bool again = (end - first) * block_keys > b_.kept_keys;
        while (blocks_.next() != no_block) {
            b_.leave(b_.order, blocks_.next());
            const BlockStrips block = take_block(first);
            if (again) weigh_again(block);
            differentiate(block);
            add_to_query(block);
            b_.enter(b_.order, block.first->first_key / block_keys);
            add_to_keys(block);
        }
        b_.leave(b_.order, no_block);
        for (std::size_t v = 0; v < used_vectors(); ++v) {
            const std::size_t left = t_.lanes - v * W;
            unpack<V, false>(grad_query_ + v * W, L, t_.d_k, V::set(1), b_.rows->query + v * W, 0,
                             left < W ? left : W);
        }
    }

private:
    T* take(std::size_t count) {
        T* const taken = scratch_;
        scratch_ += count;
        return taken;
    }

    std::size_t used_vectors() const { return (t_.lanes + W - 1) / W; }

    const Step<T>* step_of(StepKind kind) const {
        for (std::size_t i = 0; i < t_.step_count; ++i)
            if (t_.steps[i].kind == kind) return t_.steps + i;
        return nullptr;
    }

    void start() {
        pack<V>(t_.query, t_.lanes, t_.d_k, t_.query_factor, query_);
        pack<V>(b_.rows->context, t_.lanes, t_.d_v, T{1}, context_);
        copy_finite<V>(
            t_.lanes, t_.d_k, [&](std::size_t r) { return t_.query[r]; }, query_rows_);
        copy_finite<V>(
            t_.lanes, t_.d_v, [&](std::size_t r) { return b_.rows->context[r]; }, context_rows_);
        for (std::size_t i = 0; i < t_.d_k * L; i += W) V::set(0).store(grad_query_ + i);
        const Step<T>* const scale = step_of(StepKind::scale);
        for (std::size_t l = 0; l < L; ++l) {
            mean_[l] = 0;
            scale_[l] = scale == nullptr ? 1 : scale->number[l];
        }
        // The weight of a row's only key is exactly 1, so that dP - D is 0.
        softmax_.start(-min_score<T>);
    }

    std::size_t block_size() const { return block_keys * L * numbers_per_pair(has_softcap_); }

    /// What is kept of a block, if `first` is the first one.
    T* kept_at(std::size_t block, std::size_t first) const {
        return kept_ + (block - first) % (b_.kept_keys / block_keys) * block_size();
    }

    BlockStrips take_block(std::size_t first) {
        weight_ = kept_at(blocks_.next(), first);
        by_weight_ = weight_ + block_keys * L;
        slope_ = has_softcap_ ? by_weight_ + block_keys * L : nullptr;
        const BlockStrips block = blocks_.take();
        const std::size_t next = blocks_.next() == no_block ? first : blocks_.next();
        next_ = kept_at(next, first);
        next_key_ = next * block_keys;
        return block;
    }

    /// Steps of a product with so many rows, about.
    static std::size_t steps(std::size_t rows, std::size_t steps_each) {
        return (rows + V::tile_rows - 1) / V::tile_rows * steps_each;
    }

    /// Row `key` of numbers of a block.
    static std::size_t row(std::size_t key) { return key % block_keys * L; }

    T* shifts_of(const BlockStrips& block) const {
        return block_shifts_ + block.first->first_key / block_keys * L;
    }

    auto scale_mean() const {
        return [this](std::size_t lane, V factor) {
            V::mul(V::load(mean_ + lane), factor).store(mean_ + lane);
        };
    }

    /// First pass.
    void weigh_block(const BlockStrips& block) {
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

    /// In the second pass, with the same shifts; sums are not used any more.
    void weigh_again(const BlockStrips& block) const {
        const T* const shifts = shifts_of(block);
        for (std::size_t l = 0; l < L; l += W) V::load(shifts + l).store(softmax_.shift() + l);
        for (const Strip* s = block.first; s != block.end; ++s) {
            score(*s);
            weigh(*s);
        }
    }

    void score(const Strip& s) const {
        const Slopes<T> slopes{slope_ == nullptr ? nullptr : slope_ + row(s.first_key), L};
        const std::size_t count = steps(block_keys, t_.d_k);
        Fetch<false> key(t_.key + next_key_ * t_.key_stride, block_keys * t_.key_stride, count),
            value(t_.value + next_key_ * t_.value_stride, block_keys * t_.value_stride, count);
        T* const scores = scores_ + row(s.first_key);
        multiply<V>(s.end_vector - s.first_vector, s.keys,
                    Rows<T, false>{t_.key + s.first_key * t_.key_stride, t_.key_stride},
                    Vectors<T>{query_ + s.first_vector * W, L}, t_.d_k,
                    Fetching<Fetching<Store<V>, false>, false>{
                        {{scores + s.first_vector * W, L, nullptr, 0}, key}, value});
        modify_strip<V>(t_, s, scores, softmax_.peak(), slopes);
    }

    /// Scores to weights relative to the shift, with their sums; the weights' gradients.
    void weigh(const Strip& s) const {
        for (std::size_t key = s.first_key; key < s.first_key + s.keys; ++key) {
            T* const sums = softmax_.block_sum(key);
            for (std::size_t l = s.first_vector * W; l < s.end_vector * W; l += W) {
                const V weight = exponential(
                    V::sub(V::load(scores_ + row(key) + l), V::load(softmax_.shift() + l)));
                V::add(V::load(sums + l), weight).store(sums + l);
                weight.store(weight_ + row(key) + l);
            }
        }
        const Rows<T, false> values{t_.value + s.first_key * t_.value_stride, t_.value_stride};
        const Vectors<T> context{context_ + s.first_vector * W, L};
        Fetch<true> fetch(next_, block_size(), steps(block_keys, t_.d_v));
        multiply<V>(s.end_vector - s.first_vector, s.keys, values, context, t_.d_v,
                    Fetching<ByWeight, true>{{*this, s}, fetch});
    }

    /// The target of dP: 0 for masked and dropped pairs, and summed with the weights as factors.
    struct ByWeight {
        const TileBackward& in;
        const Strip& s;

        void begin(std::size_t, std::size_t) const {}
        V start(std::size_t, std::size_t) const { return V::set(0); }
        template <std::size_t R, std::size_t N>
        void finish(std::size_t first, V (&gradient)[R][N]) const {
            const std::size_t key = s.first_key + first, at = row(key);
#pragma GCC unroll 16
            for (std::size_t n = 0; n < N; ++n) {
                const std::size_t lane = (s.first_vector + n) * W;
                V mean = V::load(in.block_mean_ + lane);
#pragma GCC unroll 16
                for (std::size_t r = 0; r < R; ++r) {
                    V g = gradient[r][n];
                    if (s.visible != nullptr)
                        g = V::where(s.visible[first + r] >> lane, g, V::set(0));
                    if (in.t_.keep != nullptr)
                        g = V::where(in.t_.keep[key + r] >> lane,
                                     V::mul(g, V::set(static_cast<T>(in.t_.kept_value))),
                                     V::set(0));
                    mean = V::fma(V::load(in.weight_ + at + r * L + lane), g, mean);
                    g.store(in.by_weight_ + at + r * L + lane);
                }
                mean.store(in.block_mean_ + lane);
            }
        }
    };

    /// Between the passes: D, the sinks' gradients, and the rows to compute plainly.
    void finish_sums() {
        if (t_.has_sink) softmax_.add_sinks(t_.sink, used_vectors() * W, scale_mean());
        for (std::size_t l = 0; l < L; l += W) {
            const V sum = V::max(V::set(T(0x1p-60)), V::load(softmax_.sum() + l));
            V::div(V::set(1), sum).store(reciprocal_ + l);
            V::div(V::load(mean_ + l), sum).store(mean_ + l);
            V::load(softmax_.shift() + l).store(shift_ + l);
        }
        for (std::size_t l = 0; l < t_.lanes; ++l) {
            const T sum = softmax_.sum()[l];
            if ((sum + mean_[l]) * 0 != 0 || !(sum > 0)) {
                plain_ |= std::uint64_t{1} << l;
                plain_row(l).sum();
            } else if (t_.has_sink) {
                const double power = weight_unit * PlainRow<T>::power(t_.sink[l], shift_[l]);
                b_.rows->sink[l] =
                    -power / static_cast<double>(sum) * static_cast<double>(mean_[l]);
            }
        }
    }

    PlainBackward<T> plain_row(std::size_t lane) {
        return {t_, *b_.rows, lane, W, plain_sums_[lane]};
    }

    /// P after dropout, and dS times the derivatives of the steps.
    void differentiate(const BlockStrips& block) {
        const T* const shifts = shifts_of(block);
        for (std::size_t l = 0; l < L; l += W)
            V::mul(rescaling(V::load(shifts + l), V::load(shift_ + l)), V::load(reciprocal_ + l))
                .store(factor_ + l);
        for (const Strip* s = block.first; s != block.end; ++s)
            for (std::size_t key = s->first_key; key < s->first_key + s->keys; ++key)
                if (slope_ == nullptr && t_.keep == nullptr)
                    differentiate_key<false>(key, s->first_vector * W, s->end_vector * W);
                else
                    differentiate_key<true>(key, s->first_vector * W, s->end_vector * W);
        for (std::size_t l = 0; l < t_.lanes; ++l)
            if ((plain_ >> l & 1) != 0) differentiate_plainly(block, l);
    }

    /// `other`: there is a soft cap or dropout.
    template <bool other>
    void differentiate_key(std::size_t key, std::size_t first_lane, std::size_t end_lane) const {
        for (std::size_t l = first_lane, at = row(key) + l; l < end_lane; l += W, at += W) {
            V p = V::mul(V::load(weight_ + at), V::load(factor_ + l));
            V g = V::mul(p, V::sub(V::load(by_weight_ + at), V::load(mean_ + l)));
            if (other && slope_ != nullptr) g = V::mul(g, V::load(slope_ + at));
            V::mul(g, V::load(scale_ + l)).store(by_score_ + at);
            if (other && t_.keep != nullptr)
                p = V::where(t_.keep[key] >> l, V::mul(p, V::set(static_cast<T>(t_.kept_value))),
                             V::set(0));
            p.store(dropped_ + at);
        }
    }

    [[gnu::noinline, gnu::cold]] void differentiate_plainly(const BlockStrips& block,
                                                            std::size_t lane) {
        for (const Strip* s = block.first; s != block.end; ++s)
            for (std::size_t k = 0; k < s->keys; ++k)
                dropped_[row(s->first_key + k) + lane] = by_score_[row(s->first_key + k) + lane] =
                    0;
        plain_row(lane).each_key(block.first, block.end, [&](std::size_t key, T p, T g) {
            dropped_[row(key) + lane] = p;
            by_score_[row(key) + lane] = g;
        });
    }

    void add_to_query(const BlockStrips& block) const {
        const std::size_t count = steps(t_.d_k, block_keys);
        for (const Strip* s = block.first; s != block.end; ++s) {
            Fetch<false> kept(next_, block_size(), count),
                key(b_.finite_key + next_key_ * t_.d_k, block_keys * t_.d_k, count);
            T* const to = grad_query_ + s->first_vector * W;
            multiply<V>(s->end_vector - s->first_vector, t_.d_k,
                        Rows<T, true>{b_.finite_key + s->first_key * t_.d_k, t_.d_k},
                        Vectors<T>{by_score_ + row(s->first_key) + s->first_vector * W, L}, s->keys,
                        Fetching<Fetching<Store<V>, false>, false>{{{to, L, to, L}, kept}, key});
        }
    }

    void add_to_keys(const BlockStrips& block) {
        const std::size_t d_k = t_.d_k, d_v = t_.d_v, p_k = padded<V>(d_k), p_v = padded<V>(d_v);
        for (const Strip* s = block.first; s != block.end; ++s) {
            const std::size_t lane = s->first_vector * W, key = s->first_key,
                              end = s->end_vector * W < t_.lanes ? s->end_vector * W : t_.lanes;
            add_product<V>(s->keys, Rows<T, false>{by_score_ + row(key) + lane, L},
                           Vectors<T>{query_rows_ + lane * p_k, p_k}, end - lane,
                           b_.key + key * d_k, d_k, b_.key + next_key_ * d_k);
            add_product<V>(s->keys, Rows<T, false>{dropped_ + row(key) + lane, L},
                           Vectors<T>{context_rows_ + lane * p_v, p_v}, end - lane,
                           b_.value + key * d_v, d_v, b_.value + next_key_ * d_v);
        }
        for (std::size_t l = 0; l < t_.lanes; ++l)
            if ((plain_ >> l & 1) != 0) plain_row(l).add_infinite(block.first, block.end, b_.value);
    }

    const Backward<T>& b_;
    Tile<T>& t_;
    T* scratch_;  // what is left of it
    T *query_, *context_, *grad_query_;
    T *query_rows_, *context_rows_;
    T *factor_, *mean_, *block_mean_, *scale_, *shift_, *reciprocal_;
    OnlineSoftmax<V> softmax_;
    T* block_shifts_;
    T *scores_, *dropped_, *by_score_;  // of a block; the weights after dropout, dS
    bool has_softcap_;
    T* kept_;
    T *weight_ = nullptr, *by_weight_ = nullptr, *slope_ = nullptr;  // what is kept of the block
    T* next_ = nullptr;                                              // and of the next one
    std::size_t next_key_ = 0;
    TileBlocks blocks_;
    std::uint64_t plain_ = 0;  // lanes that are computed plainly
    PlainSums<T> plain_sums_[max_lanes];
};

template <class V>
void differentiate(const Backward<typename V::Scalar>& b) noexcept {
    TileBackward<V>(b).run();
}

}  // namespace
}  // namespace attn::kernels
