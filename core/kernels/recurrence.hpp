// The steps of the chunked form of linear attention on vectors: see core/linear/chunked.cpp, and
// kernel.hpp for what each computes.
//
// Legend: V a vector of W lanes; L lanes of a panel; R rows and N vectors are one tile.
#pragma once

#include "core/kernels/product.hpp"

namespace attn::kernels {
namespace {

/// See Entries::largest. Four maxima and sums hide the latency of each.
template <class V, class T = typename V::Scalar>
T largest(const T* numbers, std::size_t count) noexcept {
    constexpr std::size_t parts = 4, W = V::lanes;
    const V zero = V::set(0);
    V most[parts] = {zero, zero, zero, zero}, zeros[parts] = {zero, zero, zero, zero};
    const auto take = [&](std::size_t part, V number) {
        most[part] = V::max(V::abs(number), most[part]);
        zeros[part] = V::fma(number, zero, zeros[part]);  // NaN if it is not finite
    };
    std::size_t i = 0;
    for (; i + parts * W <= count; i += parts * W)
#pragma GCC unroll 4
        for (std::size_t part = 0; part < parts; ++part)
            take(part, V::load(numbers + i + part * W));
    for (; i + W <= count; i += W) take(0, V::load(numbers + i));
    if (i < count) take(0, V::load_first(numbers + i, count - i));
    T mosts[W], sums[W];
    V::max(V::max(most[0], most[1]), V::max(most[2], most[3])).store(mosts);
    V::add(V::add(zeros[0], zeros[1]), V::add(zeros[2], zeros[3])).store(sums);
    T all = 0;
    for (std::size_t l = 0; l < W; ++l) {
        if (!(sums[l] == 0)) return T(__builtin_huge_val());
        all = mosts[l] > all ? mosts[l] : all;
    }
    return all;
}

/// out[r][c] = combine(x[r][c], factor of row r and column c), the last vector in part.
template <class V, bool one_per_row, class Combine, class T>
inline void scale_each(const Scaling<T>& s, const Combine& combine) {
    constexpr std::size_t W = V::lanes;
    for (std::size_t r = 0; r < s.rows; ++r) {
        const T *const x = s.x + r * s.x_stride, *const factors = s.factors + r * s.factor_stride;
        T* const out = s.out + r * s.out_stride;
        const V factor = one_per_row ? V::set(*factors) : V::set(1);
        std::size_t c = 0;
        for (; c + W <= s.columns; c += W)
            combine(V::load(x + c), one_per_row ? factor : V::load(factors + c)).store(out + c);
        if (c == s.columns) continue;
        const std::size_t left = s.columns - c;
        combine(V::load_first(x + c, left), one_per_row ? factor : V::load_first(factors + c, left))
            .store_first(out + c, left);
    }
}

template <class V, class T = typename V::Scalar>
void scale_rows(const Scaling<T>& s) noexcept {
    scale_each<V, true>(s, [](V x, V factor) { return V::mul(x, factor); });
}
template <class V, class T = typename V::Scalar>
void scale(const Scaling<T>& s) noexcept {
    scale_each<V, false>(s, [](V x, V factor) { return V::mul(x, factor); });
}
template <class V, class T = typename V::Scalar>
void unscale(const Scaling<T>& s) noexcept {
    scale_each<V, false>(s, [](V x, V factor) { return V::div(x, factor); });
}

template <class V, class T = typename V::Scalar>
std::size_t running_products(const T* factors, std::size_t rows, std::size_t columns, T range,
                             T* out) noexcept {
    constexpr std::size_t W = V::lanes;
    const V zero = V::set(0), one = V::set(1), low = V::set(1 / range), high = V::set(range);
    for (std::size_t r = 0; r < rows; ++r, factors += columns, out += columns) {
        const T* const before = r == 0 ? nullptr : out - columns;
        V outside = zero;
        std::size_t c = 0;
        for (; c + W <= columns; c += W) {
            V product = V::load(factors + c);
            if (before != nullptr) product = V::mul(V::load(before + c), product);
            product.store(out + c);
            // Comparisons with NaN are false.
            const V within = V::where_above(high, product, zero, one);
            outside = V::max(V::where_above(product, low, within, one), outside);
        }
        bool fits = !V::any_above(outside, zero);
        for (; c < columns; ++c) {
            out[c] = before == nullptr ? factors[c] : before[c] * factors[c];
            fits = fits && out[c] > 1 / range && out[c] < range;
        }
        if (!fits) return r;
    }
    return rows;
}

/// Sums start from 0 and are written times a factor for each element.
template <class V>
struct Weigh {
    using T = typename V::Scalar;
    T* out;
    std::size_t stride;
    const T* factors;
    std::size_t factor_stride;

    void begin(std::size_t, std::size_t) const {}
    V start(std::size_t, std::size_t) const { return V::set(0); }
    template <std::size_t R, std::size_t N>
    void finish(std::size_t row, V (&sum)[R][N]) const {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
            for (std::size_t n = 0; n < N; ++n)
                V::mul(sum[r][n], V::load(factors + (row + r) * factor_stride + n * V::lanes))
                    .store(out + (row + r) * stride + n * V::lanes);
    }
};

/// See Entries::weigh. Groups of as many rows as a vector has lanes, of which the first need fewer
/// columns.
template <class V, class T = typename V::Scalar>
void weigh(const Panel<T>& p, const T* factors, std::size_t factor_stride,
           std::size_t diagonal) noexcept {
    constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;
    for (std::size_t row = 0; row < p.rows;) {
        const std::size_t rows = p.rows - row < W ? p.rows - row : W;
        const std::size_t seen = row + rows + diagonal;
        const std::size_t columns = seen < p.columns ? seen : p.columns;
        multiply<V>((columns + W - 1) / W, rows, Rows<T, false>{p.x + row * p.x_stride, p.x_stride},
                    Vectors<T>{p.packed, L}, p.d_in,
                    Weigh<V>{p.out + row * p.out_stride, p.out_stride,
                             factors + row * factor_stride, factor_stride});
        row += rows;
    }
}

/// Rows of u of one tile: sums have the part of earlier tiles, and that of earlier rows of the tile
/// is added in registers. u itself, which may be the largest part, comes last: it would take digits
/// from the others.
template <class V>
struct Substitute {
    using T = typename V::Scalar;
    const ChunkPanel<T>& p;
    const T* rates;

    T* u(std::size_t row) const { return p.right + (p.d_k + row) * (V::lanes * V::tile_vectors); }
    static std::size_t steps(std::size_t row, std::size_t) { return row; }
    void begin(std::size_t, std::size_t) const {}
    V start(std::size_t, std::size_t) const { return V::set(0); }
    template <std::size_t R, std::size_t N>
    void finish(std::size_t row, V (&sum)[R][N]) const {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r) {
            const T* const left = p.left + (row + r) * p.left_stride + p.d_k + row;
#pragma GCC unroll 16
            for (std::size_t m = 0; m < r; ++m) {
                const V factor = V::set(left[m]);
#pragma GCC unroll 16
                for (std::size_t n = 0; n < N; ++n)
                    sum[r][n] = V::accumulate(sum[r][n], factor, sum[m][n]);
            }
            const V rate = V::set(rates[row + r]);
#pragma GCC unroll 16
            for (std::size_t n = 0; n < N; ++n) {
                T* const to = u(row + r) + n * V::lanes;
                sum[r][n] = V::mul(rate, V::sub(V::load(to), sum[r][n]));
                sum[r][n].store(to);
            }
        }
    }
};

/// Rows of outputs, which see the rows of u up to their own. `whole` columns are in whole vectors.
template <class V>
struct Read {
    using T = typename V::Scalar;
    const ChunkPanel<T>& p;
    V scale;
    std::size_t first;
    T* out;  ///< of row `first`
    std::size_t stride;

    std::size_t steps(std::size_t row, std::size_t rows) const {
        return row + rows < p.tokens ? row + rows : p.tokens;
    }
    void begin(std::size_t, std::size_t) const {}
    V start(std::size_t, std::size_t) const { return V::set(0); }
    template <std::size_t R, std::size_t N>
    void finish(std::size_t row, V (&sum)[R][N]) const {
        constexpr std::size_t W = V::lanes;
        const std::size_t last = p.columns - (N - 1) * W;
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r) {
            T* const to = out + (row - first + r) * stride;
#pragma GCC unroll 16
            for (std::size_t n = 0; n + 1 < N; ++n) V::mul(scale, sum[r][n]).store(to + n * W);
            const V end = V::mul(scale, sum[r][N - 1]);
            if (last == W)
                end.store(to + (N - 1) * W);
            else
                end.store_first(to + (N - 1) * W, last);
        }
    }
};

/// Rows [row, end) of left [S; u], of u so many rows as the target's `steps`.
template <class V, std::size_t N = V::tile_vectors, class T, class Target>
inline void multiply_triangle(std::size_t vectors, std::size_t row, std::size_t end,
                              const ChunkPanel<T>& p, const Target& target) {
    if constexpr (N > 1) {
        if (vectors != N) return multiply_triangle<V, N - 1>(vectors, row, end, p, target);
    }
    constexpr std::size_t most = max_rows<V, N>();
    while (row < end) {
        const std::size_t height = next_height(end - row, most);
        multiply_rows<V, most, N>(row, height, Rows<T, false>{p.left, p.left_stride},
                                  Vectors<T>{p.right, V::lanes * V::tile_vectors},
                                  p.d_k + target.steps(row, height), target);
        row += height;
    }
}

template <class V, class T = typename V::Scalar>
void substitute(const ChunkPanel<T>& p, const T* rates) noexcept {
    multiply_triangle<V>((p.columns + V::lanes - 1) / V::lanes, 0, p.tokens, p,
                         Substitute<V>{p, rates});
}

template <class V, class T = typename V::Scalar>
void read(const ChunkPanel<T>& p, std::size_t begin, std::size_t end, T scale, T* out,
          std::size_t stride) noexcept {
    multiply_triangle<V>((p.columns + V::lanes - 1) / V::lanes, begin, end, p,
                         Read<V>{p, V::set(scale), begin, out, stride});
}

/// Sums start from rows of the state, which they replace, each times a factor before and after.
template <class V>
struct Update {
    using T = typename V::Scalar;
    T* state;
    const T *before, *after;

    void begin(std::size_t, std::size_t) const {}
    T* at(std::size_t row, std::size_t n) const {
        return state + (row * V::tile_vectors + n) * V::lanes;
    }
    V start(std::size_t row, std::size_t n) const {
        const V old = V::load(at(row, n));
        return before == nullptr ? old : V::mul(V::set(before[row]), old);
    }
    template <std::size_t R, std::size_t N>
    void finish(std::size_t row, V (&sum)[R][N]) const {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < R; ++r) {
            const V factor = after == nullptr ? V::set(1) : V::set(after[row + r]);
#pragma GCC unroll 16
            for (std::size_t n = 0; n < N; ++n) V::mul(factor, sum[r][n]).store(at(row + r, n));
        }
    }
};

template <class V, class T = typename V::Scalar>
void update(const ChunkPanel<T>& p, const T* keys, const T* before, const T* after) noexcept {
    constexpr std::size_t L = V::lanes * V::tile_vectors;
    multiply<V>((p.columns + V::lanes - 1) / V::lanes, p.d_k, Rows<T, true>{keys, p.d_k},
                Vectors<T>{p.right + p.d_k * L, L}, p.tokens, Update<V>{p.right, before, after});
}

}  // namespace
}  // namespace attn::kernels
