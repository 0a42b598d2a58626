// The keys and values of a block as pairs of bfloat16, see PairTable.
#pragma once

#include "core/kernels/product.hpp"
#include "core/kernels/tile_blocks.hpp"

namespace attn::kernels {
namespace {

/// Rows of a tile's lanes, two by two, as pairs; 0 follows the last. They may replace the rows.
template <class V, class T = typename V::Scalar>
inline void pair_rows(const T* rows, std::size_t count, std::size_t first_vector,
                      std::size_t end_vector, T* pairs) {
    constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;
    for (std::size_t r = 0; r < count; r += 2)
        for (std::size_t l = first_vector * W; l < end_vector * W; l += W)
            V::pair(V::load(rows + r * L + l),
                    r + 1 < count ? V::load(rows + (r + 1) * L + l) : V::set(0))
                .store(pairs + r / 2 * L + l);
}

/// Adds the numbers of rows of pairs to the sum of each lane.
template <class V, class T = typename V::Scalar>
inline void add_pairs(const T* pairs, std::size_t rows, std::size_t first_vector,
                      std::size_t end_vector, T* sums) {
    constexpr std::size_t W = V::lanes, L = W * V::tile_vectors, chains = 4;
    const V ones = V::pair(V::set(1), V::set(1));
    for (std::size_t l = first_vector * W; l < end_vector * W; l += W) {
        V sum[chains] = {V::load(sums + l), V::set(0), V::set(0), V::set(0)};
        std::size_t r = 0;
        for (; r + chains <= rows; r += chains)
#pragma GCC unroll 4
            for (std::size_t c = 0; c < chains; ++c)
                sum[c] = V::accumulate(sum[c], ones, V::load(pairs + (r + c) * L + l));
        for (; r < rows; ++r) sum[0] = V::accumulate(sum[0], ones, V::load(pairs + r * L + l));
        V::add(V::add(sum[0], sum[1]), V::add(sum[2], sum[3])).store(sums + l);
    }
}

/// Shared by tiles that are computed together.
template <class V>
class BlockPairs {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes;

public:
    explicit BlockPairs(const Tile<T>& tile)
        : t_(tile), key_stride_(pairs_in_row((t_.d_k + 1) / 2)),
          value_stride_(pairs_in_row(t_.d_v)),
          weights_(t_.weights_buffer +
                   weights_size(W * V::tile_vectors, t_.kv_len, t_.weights[0] != nullptr)) {}

    /// Those of the weights of the current block.
    T* weights() const { return weights_; }
    Rows<T, false> keys_from(std::size_t key) const {
        return {keys_of(key / block_keys) + key % block_keys * key_stride_, key_stride_};
    }
    Rows<T, true> values_from(std::size_t key) const {
        return {values_of(key / block_keys) + key % block_keys / 2 * value_stride_, value_stride_};
    }

    void convert(std::size_t block) {
        if (t_.is_paired != nullptr ? t_.is_paired[block] : block == block_) return;
        if (t_.is_paired != nullptr) t_.is_paired[block] = true;
        block_ = block;
        T *const keys = keys_of(block), *const values = values_of(block);
        const std::size_t first = block * block_keys, left = t_.kv_len - first,
                          count = left < block_keys ? left : block_keys;
        for (std::size_t k = 0; k < count; ++k) {
            const T* key = t_.key + (first + k) * t_.key_stride;
            each_part(t_.d_k, 2 * W, [&](std::size_t i, auto part) {
                V::narrowed(part(key + i, 0), part(key + i, W))
                    .store(keys + k * key_stride_ + i / 2);
            });
        }
        for (std::size_t k = 0; k < count; k += 2) {
            const T* value = t_.value + (first + k) * t_.value_stride;
            const bool is_last = k + 1 == count;
            each_part(t_.d_v, W, [&](std::size_t c, auto part) {
                V::pair(part(value + c, 0),
                        is_last ? V::set(0) : part(value + t_.value_stride + c, 0))
                    .store(values + k / 2 * value_stride_ + c);
            });
        }
    }

private:
    T* keys_of(std::size_t block) const {
        return t_.pairs + (t_.is_paired != nullptr ? block * pairs_size(t_.d_k, t_.d_v) : 0);
    }
    T* values_of(std::size_t block) const { return keys_of(block) + block_keys * key_stride_; }

    /// use(i, part) for every `step` elements of a row from the i-th on: part(row, j) is the vector
    /// of its elements from the j-th on, and zeros after the row's `length`.
    template <class Use>
    static void each_part(std::size_t length, std::size_t step, Use use) {
        std::size_t i = 0;
#pragma GCC unroll 4
        for (; i + step <= length; i += step)
            use(i, [](const T* row, std::size_t j) { return V::load(row + j); });
        if (i < length)
            use(i, [left = length - i](const T* row, std::size_t j) {
                const std::size_t filled = left < j ? 0 : left - j;
                return filled == 0 ? V::set(0) : V::load_first(row + j, filled < W ? filled : W);
            });
    }

    const Tile<T>& t_;
    std::size_t key_stride_, value_stride_;
    T* weights_;
    std::size_t block_ = no_block;
};

/// Of kernels without pairs.
template <class V>
requires(!is_paired<V>) class BlockPairs<V> {
public:
    explicit BlockPairs(const Tile<typename V::Scalar>&) {}
};

}  // namespace
}  // namespace attn::kernels
