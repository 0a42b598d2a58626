// Dropout for tiles of queries: the same decisions as for the whole question, tile by tile.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/memory.hpp"
#include "core/fused/keep_bits.hpp"
#include "core/fused/tile_plan.hpp"
#include "core/operator/dropout.hpp"

namespace attn {

/// One worker's buffer for the decisions of a tile, and the stream that it draws them from.
struct TileKeep {
    AlignedArray<std::uint64_t> rows, keys;
    std::optional<KeepBits> stream;
    std::size_t first_head = 0;   ///< where each head has a stream
    std::uint64_t decisions = 0;  ///< drawn or skipped in the stream
};

/// Decisions are drawn for the current tile only, so memory is O(kv_len) per worker. Each worker
/// draws from its own stream, which skips the tiles of others.
class TileDropout {
public:
    /// `first_query` is the number of drawn rows of each matrix before the first that is computed.
    TileDropout(const Dropout& dropout, const TileSizes& sizes, std::size_t first_query,
                const kernels::Draws& draws);

    /// Reserves the buffer that `keep` needs.
    void reserve(TileKeep& buffer) const;

    /// The ends of runs of `tiles` that are best given to one worker each, in order, since skipping
    /// the draws of others takes time. Long runs come first, so that all workers end together.
    std::vector<std::size_t> runs(std::size_t tiles, std::size_t threads) const;

    /// Bit l of word k: lane l keeps key k, one of `seen`. Null if nothing is dropped.
    const std::uint64_t* keep(const TilePlace& place, KeyRange seen, TileKeep& buffer) const;

    /// The factor of kept weights: PyTorch divides ones by 1 - p in T.
    template <class T>
    double kept_value() const {
        if (!drops() || dropout_.p == 1) return 1;
        return static_cast<double>(T{1} / static_cast<T>(1 - dropout_.p));
    }

private:
    bool drops() const { return dropout_.p != 0; }
    std::size_t words() const { return (sizes_.keys + 63) / 64; }
    std::uint64_t drawn_rows_before(const TilePlace& place) const;

    const Dropout& dropout_;
    TileSizes sizes_;
    std::size_t first_query_;
    std::vector<KeepBits> streams_;  // one; mkl head by head: one per head
};

}  // namespace attn
