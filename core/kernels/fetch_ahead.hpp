// Prefetching: the data that a tile requests before it is needed.
#pragma once

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

/// Prefetches a row's cache lines, for reading or for writing.
template <bool writes = false, class T>
inline void prefetch_row(const T* row, std::size_t length) {
    for (std::size_t i = 0; i < length; i += 64 / sizeof(T))
        __builtin_prefetch(row + i, writes ? 1 : 0, 2);
}

/// While a block of keys is computed, prefetches the keys and values of the tile's next block, or
/// of the first block of a later tile. Over its blocks it also spreads the rows needed at the end
/// of the tile and at the start of the next one. Row by row: many at once would delay other loads.
template <class T>
class FetchAhead {
public:
    explicit FetchAhead(const Tile<T>& tile) : t_(tile) {}

    /// Tiles that are computed together prefetch a share of each block each.
    void start(std::size_t share, std::size_t shares) {
        share_ = share;
        shares_ = shares;
        for (std::size_t i = 0; i < t_.strip_count; ++i) blocks_ += t_.strips[i].ends_block ? 1 : 0;
    }

    /// `next`: the first strip of the block after it.
    void start_block(const Strip* next) {
        std::size_t lane = t_.lanes * block_++ / blocks_;
        for (; lane < t_.lanes * block_ / blocks_; ++lane) {
            prefetch_row<true>(t_.context[lane], t_.d_v);
            if (t_.next_query != nullptr) prefetch_row(t_.next_query + lane * t_.d_k, t_.d_k);
        }
        if (next == t_.strips + t_.strip_count) {
            key_ = t_.next_key;
            value_ = t_.next_value;
            keys_ = t_.next_keys;
            return;
        }
        const std::size_t key = next->first_key / block_keys * block_keys;
        key_ = t_.key + key * t_.key_stride;
        value_ = t_.value + key * t_.value_stride;
        keys_ = t_.kv_len - key < block_keys ? t_.kv_len - key : block_keys;
    }

    /// Keys [first, end) of the current block are about to be computed.
    void rows(std::size_t first, std::size_t end) const {
        const std::size_t begin = share_ * block_keys;
        std::size_t last = (begin + end) / shares_;
        if (last > keys_) last = keys_;
        for (std::size_t k = (begin + first) / shares_; k < last; ++k) {
            prefetch_row(key_ + k * t_.key_stride, t_.d_k);
            prefetch_row(value_ + k * t_.value_stride, t_.d_v);
        }
    }

private:
    const Tile<T>& t_;
    std::size_t share_ = 0, shares_ = 1;
    std::size_t block_ = 0, blocks_ = 0;  // begun, and in all
    const T *key_ = nullptr, *value_ = nullptr;
    std::size_t keys_ = 0;
};

}  // namespace
}  // namespace attn::kernels
