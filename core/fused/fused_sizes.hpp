// The sizes of a fused run, known in advance: its division into tiles and its working memory.
#pragma once

#include <cstddef>

#include "core/fused/tile_plan.hpp"

namespace attn {

/// Keys of one split, used if there are too few rows to keep all threads busy: then key splits are
/// computed separately and merged. A multiple of a block.
inline constexpr std::size_t part_keys = 32 * kernels::block_keys;

struct FusedSizes {
    TileSizes sizes;
    std::size_t kv_heads, d_k, d_v;
    std::size_t element;              ///< bytes
    std::size_t lanes, vector_lanes;  ///< of a whole tile, and of one vector
    std::size_t threads;
    bool drops, head_by_head;  ///< dropout
    bool rows_in_order;        ///< tiles are in the order of the rows of (batch, heads, q_len)
    bool weights, scores;      ///< are written

    /// Heads that share their keys.
    std::size_t group() const { return sizes.heads / kv_heads; }
    /// Whether rows are computed one by one.
    bool by_rows() const;

    TileGrid grid() const;

    /// Elements that a worker needs for each tile that it computes, and for the weights of those
    /// that it computes together.
    std::size_t scratch() const;
    std::size_t weights_space() const;
};

}  // namespace attn
