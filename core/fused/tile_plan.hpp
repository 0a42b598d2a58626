// The division of a question into tiles of queries, and the keys of each tile.
#pragma once

#include <span>

#include "core/base/memory.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/mask.hpp"

namespace attn {

struct TileSizes {
    std::size_t batch, heads, queries,
        keys;  ///< queries that are computed, not all of the question
};

/// Rows of one tile: `queries` of each of some heads that share their keys, head by head.
struct TileRows {
    std::size_t batch, first_head, heads, first_query, queries;
    std::size_t split;  ///< of the keys

    std::size_t head(std::size_t lane) const { return first_head + lane / queries; }
    std::size_t query(std::size_t lane) const { return first_query + lane % queries; }
};

/// Keys of one split, used if there are too few rows to keep all threads busy: then key splits are
/// computed separately and merged. A multiple of a block.
inline constexpr std::size_t split_keys = 32 * kernels::block_keys;

/// Whether a head's keys and values, of `bytes` in total, exceed most second-level caches, so that
/// tiles share each block.
constexpr bool outgrow_cache(double bytes) {
    return bytes > 0x1p20;
}

/// Tiles [first, first + count).
struct TileRange {
    std::size_t first, count;
};

/// All tiles of a question, numbered.
struct TileGrid {
    TileSizes sizes{};
    std::size_t lanes = 0, heads_per_tile = 1, splits = 1;
    bool by_rows = false;       ///< very few queries per key head: rows are computed one by one
    bool in_order = false;      ///< rows in the order of dropout's draws
    bool head_by_head = false;  ///< that order has the heads before the batch
    std::size_t tiles_per_item =
        1;  ///< tiles of one head that are one item of work; splits is 1 then

    std::size_t tiles() const {
        return sizes.batch * (sizes.heads / heads_per_tile) * query_blocks() * splits;
    }
    std::size_t items() const {
        return sizes.batch * (sizes.heads / heads_per_tile) * items_per_head();
    }
    TileRange tiles_of(std::size_t item) const;
    /// Unless rows must be in order, the last queries of a head come first: with a causal mask they
    /// attend to the most keys, and large tiles at the end would leave threads idle.
    TileRows rows_of(std::size_t tile) const;

    /// The most keys of a tile, and those of this one.
    std::size_t keys_per_tile() const { return splits == 1 ? sizes.keys : split_keys; }
    KeyRange keys_of(const TileRows& rows) const;

private:
    std::size_t queries_per_tile() const { return lanes / heads_per_tile; }
    std::size_t query_blocks() const {
        return (sizes.queries + queries_per_tile() - 1) / queries_per_tile();
    }
    std::size_t items_per_head() const {
        return (query_blocks() * splits + tiles_per_item - 1) / tiles_per_item;
    }
};

/// The strips of one tile, see kernels::Strip. Blocks of keys that are masked for all lanes are
/// left out.
class TilePlan {
public:
    /// `first_query` is the index that the mask gives to query row 0; `keys` starts at a multiple
    /// of block_keys. `by_rows`: blocks are not divided, so that sums along a row do not depend on
    /// the size of a vector.
    /// `pairs`: strips begin at even keys.
    void make(const Mask& mask, const TileRows& rows, std::size_t first_query, KeyRange keys,
              std::size_t vector_lanes, bool by_rows, bool pairs);

    /// Allocates what `make` needs for so many keys.
    void reserve(const Mask& mask, std::size_t keys, std::size_t vector_lanes, bool by_rows);

    std::span<const kernels::Strip> strips() const { return {strips_.data(), count_}; }

    /// From the first key of the strips to the last.
    KeyRange seen() const {
        if (count_ == 0) return {0, 0};
        const kernels::Strip& last = strips().back();
        return {strips().front().first_key, last.first_key + last.keys};
    }

private:
    void add_block(const Mask& mask, const TileRows& rows, Block block);
    void cut_block(const Block& block);
    void add_strip(const kernels::Strip& strip, bool may_join);

    std::size_t first_key_ = 0, first_index_ = 0, vector_lanes_ = 0, vectors_ = 0;
    bool by_rows_ = false;
    std::uint64_t lanes_ = 0;  // a bit for each
    AlignedArray<kernels::Strip> strips_;
    std::size_t count_ = 0;
    AlignedArray<std::uint64_t> seen_;  // from first_key_, in blocks not visible to all lanes
};

}  // namespace attn
