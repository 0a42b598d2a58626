// A tile's blocks of keys, the scores of their strips, and tiles of one head that are computed
// together, block by block.
#pragma once

#include "core/kernels/product.hpp"
#include "core/kernels/score_steps.hpp"

namespace attn::kernels {
namespace {

inline constexpr std::size_t no_block = ~std::size_t{0};

/// Strips [first, end) of one block.
struct BlockStrips {
    const Strip *first, *end;
};

/// The blocks of a tile that are not yet computed.
class TileBlocks {
public:
    template <class T>
    explicit TileBlocks(const Tile<T>& tile)
        : next_(tile.strips), end_(tile.strips + tile.strip_count) {}

    /// The next one; no_block after the last.
    std::size_t next() const { return next_ == end_ ? no_block : next_->first_key / block_keys; }

    /// The strips of the next block; there must be one.
    BlockStrips take() {
        const Strip* const first = next_;
        while (!next_++->ends_block) {
        }
        return {first, next_};
    }

private:
    const Strip *next_, *end_;
};

/// Modifies and masks the scores of a strip, (keys, tile lanes). `peak` holds a number per lane,
/// which is raised to the lane's largest score.
template <class V, class T = typename V::Scalar>
inline void modify_strip(const Tile<T>& t, const Strip& s, T* scores, T* peak,
                         Slopes<T> slopes = {}) {
    constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;
    for (std::size_t v = s.first_vector; v < s.end_vector; ++v) {
        T* column = scores + v * W;
        modify_column(t, s, Column<V>{column, s.keys, v * W}, slopes);
        V highest[4];
        for (V& p : highest) p = V::load(peak + v * W);
        std::size_t k = 0;
        for (; k + 4 <= s.keys; k += 4)
            for (std::size_t i = 0; i < 4; ++i)
                highest[i] = V::max(V::load(column + (k + i) * L), highest[i]);
        for (; k < s.keys; ++k) highest[0] = V::max(V::load(column + k * L), highest[0]);
        V::max(V::max(highest[0], highest[1]), V::max(highest[2], highest[3])).store(peak + v * W);
    }
}

/// What scores of pairs are multiplied by, whose queries have only its sign.
template <class V, class T = typename V::Scalar>
inline V score_factor(const Tile<T>& t) {
    return V::abs(V::set(t.query_factor));
}

/// Scores of a strip, (keys, tile lanes), modified and masked. `query` is packed, `keys` and
/// `steps` are those of the product, and `peak` holds a number per lane, which is raised to the
/// lane's largest score.
template <class V, class T = typename V::Scalar>
inline void score_strip(const Tile<T>& t, const Strip& s, Rows<T, false> keys, std::size_t steps,
                        const T* query, T* scores, T* peak) {
    constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;
    const std::size_t first = s.first_vector;
    multiply<V>(s.end_vector - first, s.keys, keys, Vectors<T>{query + first * W, L}, steps,
                Store<V>{scores + first * W, L, nullptr, 0});
    if constexpr (is_paired<V>)
        for (std::size_t v = first; v < s.end_vector; ++v)
            Column<V>{scores + v * W, s.keys, v * W}.each(
                [&](std::size_t, V x) { return V::mul(x, score_factor<V>(t)); });
    modify_strip<V>(t, s, scores, peak);
}

/// Computes tiles of one head block by block: each block for every tile to which it is visible. A
/// Computation has start(share, shares), next_block() and compute_block().
template <class Computation>
inline void run_tiles(Computation* tiles, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) tiles[i].start(i, count);
    for (;;) {
        std::size_t block = no_block;
        for (std::size_t i = 0; i < count; ++i)
            if (tiles[i].next_block() < block) block = tiles[i].next_block();
        if (block == no_block) return;
        for (std::size_t i = 0; i < count; ++i)
            if (tiles[i].next_block() == block) tiles[i].compute_block();
    }
}

}  // namespace
}  // namespace attn::kernels
