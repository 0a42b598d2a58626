// The scores of a strip of keys for a tile of queries.
#pragma once

#include "core/kernels/product.hpp"
#include "core/kernels/score_steps.hpp"

namespace attn::kernels {
namespace {

/// Scores of a strip, (keys, tile lanes), modified and masked. `query` is packed, and `peak` holds
/// a number per lane, which is raised to the lane's largest score.
template <class V, class T = typename V::Scalar>
inline void score_strip(const Tile<T>& t, const Strip& s, const T* query, T* scores, T* peak) {
    constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;
    const std::size_t first = s.first_vector;
    multiply<V>(s.end_vector - first, s.keys,
                Rows<T, false>{t.key + s.first_key * t.key_stride, t.key_stride},
                Vectors<T>{query + first * W, L}, t.d_k,
                Store<V>{scores + first * W, L, nullptr, 0});
    for (std::size_t v = first; v < s.end_vector; ++v) {
        T* column = scores + v * W;
        modify_column(t, s, Column<V>{column, s.keys, v * W});
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

}  // namespace
}  // namespace attn::kernels
