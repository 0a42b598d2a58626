// What the products of the backward pass need besides product.hpp: rows of queries as right
// factors, sums in rows of memory, and prefetching while they run.
#pragma once

#include "core/kernels/product.hpp"

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

/// Prefetches memory piece by piece during a product, in all so many numbers in so many steps.
template <bool writes>
struct Fetch {
    std::uintptr_t at;  // a number, as it may pass the end
    std::size_t bytes_per_step;

    template <class T>
    Fetch(const T* start, std::size_t count, std::size_t steps)
        : at(reinterpret_cast<std::uintptr_t>(start)),
          bytes_per_step(count * sizeof(T) / steps + 1) {}
    void next() {
        __builtin_prefetch(reinterpret_cast<const void*>(at), writes ? 1 : 0, 2);
        at += bytes_per_step;
    }
};

/// A target of a product which meanwhile prefetches.
template <class Target, bool writes>
struct Fetching : Target {
    Fetch<writes>& fetch;
    void step() const {
        if constexpr (requires { Target::step(); }) Target::step();
        fetch.next();
    }
};

/// rows[r] += sum_s a[r][s] b[s], in panels of vectors of about the same width. As many rows from
/// `next` on are prefetched.
template <class V, class T = typename V::Scalar>
inline void add_product(std::size_t rows, Rows<T, false> a, Vectors<T> b, std::size_t steps, T* out,
                        std::size_t columns, const T* next) {
    constexpr std::size_t W = V::lanes;
    const std::size_t vectors = padded<V>(columns) / W;
    const std::size_t panels = (vectors + V::tile_vectors - 1) / V::tile_vectors;
    Fetch<true> fetch(next, rows * columns,
                      panels * ((rows + V::tile_rows - 1) / V::tile_rows) * steps);
    for (std::size_t i = 0, first = 0; i < panels; ++i) {
        const std::size_t end = vectors * (i + 1) / panels;
        multiply<V>(
            end - first, rows, a, Vectors<T>{b.start + first * W, b.stride}, steps,
            Fetching<AddRows<V>, true>{{out + first * W, columns, columns - first * W}, fetch});
        first = end;
    }
}

}  // namespace
}  // namespace attn::kernels
