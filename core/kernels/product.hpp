// The product that all kernels use, and the packing that it requires.
//
// Legend: V a vector of W lanes; R rows and N vectors are one tile of the result in registers.
#pragma once

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

/// The left factor, a[r][s]: rows are `stride` apart and contiguous, or rows are interleaved and
/// steps are `stride` apart.
template <class T, bool side_by_side>
struct Rows {
    const T* start;
    std::size_t stride;
};

/// The right factor, b[s][n]: vectors of lanes, `stride` apart.
template <class T>
struct Vectors {
    const T* start;
    std::size_t stride;
};

/// The target of a tile of sums: after begin(row, rows) a sum starts from start(row, n) and ends in
/// finish(row, sums); step() is called at each step, if there is one. This one writes the sums,
/// starting from the previous contents, a bias, or 0.
template <class V>
struct Store {
    using T = typename V::Scalar;
    T* c;
    std::size_t stride;
    const T* init;  ///< null: 0
    std::size_t init_stride;

    V start(std::size_t row, std::size_t n) const {
        return init != nullptr ? V::load(init + row * init_stride + n * V::lanes) : V::set(0);
    }
    template <std::size_t R, std::size_t N>
    void finish(std::size_t row, V (&sum)[R][N]) const {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
            for (std::size_t n = 0; n < N; ++n)
                sum[r][n].store(c + (row + r) * stride + n * V::lanes);
    }
    void begin(std::size_t, std::size_t) const {}
};

/// sum_s a[r][s] b[s][n] for the R rows from `row` on and N vectors, added in the order of s, so
/// that an element does not depend on the division into tiles.
// Explicit unrolling: only then do compilers keep the sums in registers throughout.
template <class V, std::size_t R, std::size_t N, class T, bool side_by_side, class Target>
inline void multiply_tile(std::size_t row, Rows<T, side_by_side> a, Vectors<T> b, std::size_t steps,
                          Target& target) {
    const std::size_t next_row = side_by_side ? 1 : a.stride;
    const std::size_t next_step = side_by_side ? a.stride : 1;
    const T* left = a.start + row * next_row;
    target.begin(row, R);
    V sum[R][N];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (std::size_t n = 0; n < N; ++n) sum[r][n] = target.start(row + r, n);
    for (; steps != 0; --steps, left += next_step, b.start += b.stride) {
        V right[N];
#pragma GCC unroll 16
        for (std::size_t n = 0; n < N; ++n) right[n] = V::load(b.start + n * V::lanes);
        // Interleaved rows are in another cache line at each step, which processors do not
        // prefetch.
        if constexpr (side_by_side) __builtin_prefetch(left + 8 * next_step, 0, 3);
        if constexpr (requires { target.step(); }) target.step();
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r) {
            const V one = V::set(left[r * next_row]);
#pragma GCC unroll 16
            for (std::size_t n = 0; n < N; ++n) sum[r][n] = V::accumulate(sum[r][n], one, right[n]);
        }
    }
    target.finish(row, sum);
}

/// The most rows of a tile of N vectors: fewer vectors leave registers for more rows, which hide
/// the latency of the multiply-add.
template <class V, std::size_t N>
constexpr std::size_t max_rows() {
    constexpr std::size_t registers = V::tile_rows * V::tile_vectors;
    return registers / N < 2 * V::tile_rows ? registers / N : 2 * V::tile_rows;
}

/// The next lower height of a tile: below the most rows, powers of two. Every height is compiled
/// separately, and these leave few rows over.
constexpr std::size_t lower(std::size_t height) {
    std::size_t power = 1;
    while (2 * power < height) power *= 2;
    return power;
}

/// The height of the next tile when so many rows remain: less than two whole tiles are halved, so
/// that no tile has few rows.
constexpr std::size_t next_height(std::size_t left, std::size_t most) {
    std::size_t height = most;
    if (left > most)
        while (left < 2 * most && 2 * lower(height) >= left) height = lower(height);
    else
        while (height > left) height = lower(height);
    return height;
}

/// multiply_tile for one of the heights from R down.
template <class V, std::size_t R, std::size_t N, class T, bool side_by_side, class Target>
inline void multiply_rows(std::size_t row, std::size_t rows, Rows<T, side_by_side> a, Vectors<T> b,
                          std::size_t steps, Target& target) {
    if constexpr (R > 1) {
        if (rows != R) return multiply_rows<V, lower(R), N>(row, rows, a, b, steps, target);
    }
    multiply_tile<V, R, N>(row, a, b, steps, target);
}

/// a b for any number of rows and a number of vectors from 1 to V::tile_vectors.
template <class V, std::size_t N = V::tile_vectors, class T, bool side_by_side, class Target>
inline void multiply(std::size_t vectors, std::size_t rows, Rows<T, side_by_side> a, Vectors<T> b,
                     std::size_t steps, Target&& target) {
    if constexpr (N > 1) {
        if (vectors != N) return multiply<V, N - 1>(vectors, rows, a, b, steps, target);
    }
    constexpr std::size_t most = max_rows<V, N>();
    for (std::size_t row = 0; row < rows;) {
        const std::size_t height = next_height(rows - row, most);
        multiply_rows<V, most, N>(row, height, a, b, steps, target);
        row += height;
    }
}

/// packed[i][r] = factor * rows[r][i], (length, tile lanes); lanes past `count` repeat the last
/// row.
template <class V, class T = typename V::Scalar>
void pack(const T* const* rows, std::size_t count, std::size_t length, T factor,
          T* packed) noexcept {
    constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;
    const auto row = [&](std::size_t r) { return rows[r < count ? r : count - 1]; };
    const V times = V::set(factor);
    // Vectors past the last row are never multiplied.
    for (std::size_t first = 0; first < count; first += W) {
        std::size_t i = 0;
        for (; i + W <= length; i += W) {
            V square[W];
#pragma GCC unroll 16
            for (std::size_t r = 0; r < W; ++r) square[r] = V::load(row(first + r) + i);
            V::transpose(square);
#pragma GCC unroll 16
            for (std::size_t r = 0; r < W; ++r)
                V::mul(square[r], times).store(packed + (i + r) * L + first);
        }
        for (; i < length; ++i)
            for (std::size_t r = 0; r < W; ++r)
                packed[i * L + first + r] = row(first + r)[i] * factor;
    }
}

/// to[r][i] = columns[i][first_lane + r] * factor[r] + 0, for one vector of lanes, of which `count`
/// are used: a column of lanes becomes rows. The 0 turns -0 into 0.
template <class V, bool once, class T = typename V::Scalar>
inline void unpack(const T* columns, std::size_t column_stride, std::size_t length, V factor,
                   T* const* to, std::size_t offset, std::size_t count) {
    constexpr std::size_t W = V::lanes;
    for (std::size_t i = 0; i < length; i += W) {
        const std::size_t filled = length - i < W ? length - i : W;
        V square[W];
        for (std::size_t j = 0; j < W; ++j)
            square[j] = j < filled
                            ? V::fma(V::load(columns + (i + j) * column_stride), factor, V::set(0))
                            : V::set(0);
        V::transpose(square);
        for (std::size_t r = 0; r < count; ++r) {
            T* out = to[r] + offset + i;
            if (filled != W)
                square[r].store_first(out, filled);
            else if (once)
                square[r].store_once(out);
            else
                square[r].store(out);
        }
    }
}

/// One panel of x W^T + b, see Panel.
template <class V, class T = typename V::Scalar>
void project(const Panel<T>& p) noexcept {
    constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;
    const std::size_t vectors = (p.columns + W - 1) / W;
    const Vectors<T> weight{p.packed, L};
    if (p.columns == vectors * W)
        return multiply<V>(vectors, p.rows, Rows<T, false>{p.x, p.x_stride}, weight, p.d_in,
                           Store<V>{p.out, p.out_stride, p.bias, 0});
    // The last vector extends past the columns: rows go through a buffer.
    constexpr std::size_t most = 2 * V::tile_rows;
    T buffer[most * L];
    for (std::size_t row = 0; row < p.rows; row += most) {
        const std::size_t rows = p.rows - row < most ? p.rows - row : most;
        multiply<V>(vectors, rows, Rows<T, false>{p.x + row * p.x_stride, p.x_stride}, weight,
                    p.d_in, Store<V>{buffer, L, p.bias, 0});
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < p.columns; ++c)
                p.out[(row + r) * p.out_stride + c] = buffer[r * L + c];
    }
}

}  // namespace
}  // namespace attn::kernels
