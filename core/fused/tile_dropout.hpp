// Dropout for tiles of queries: the same decisions as for the whole question, tile by tile.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "core/fused/tile_plan.hpp"
#include "core/operator/dropout.hpp"

namespace attn {

/// One worker's room for the decisions of a tile.
struct TileKeep {
    std::vector<std::uint64_t> rows, keys;
};

/// Decisions are drawn for the tile at hand only, so memory is O(kv_len) a worker. MCG31 jumps to a
/// tile's rows; MT19937 cannot, so workers take their turns at it in the order of the tiles, whose
/// grid must be in order.
class TileDropout {
public:
    /// `first_query` is the number of drawn rows of each matrix before the first that is computed.
    TileDropout(const Dropout& dropout, const TileSizes& sizes, std::size_t first_query);

    /// Makes the room that `keep` needs. Beforehand, so that no worker can fail when others wait
    /// for its turn.
    void reserve(TileKeep& room) const;

    /// Bit l of word k: lane l keeps key k. Null where nothing is dropped.
    const std::uint64_t* keep(std::size_t tile, const TilePlace& place, TileKeep& room);

    /// What a kept weight is multiplied by: PyTorch divides ones by 1 - p in T.
    template <class T>
    double kept_value() const {
        if (!drops() || dropout_.p == 1) return 1;
        return static_cast<double>(T{1} / static_cast<T>(1 - dropout_.p));
    }

private:
    bool drops() const { return dropout_.p != 0; }
    std::size_t words() const { return (sizes_.keys + 63) / 64; }
    std::uint64_t drawn_rows_before(const TilePlace& place) const;
    void draw_rows(std::size_t tile, const TilePlace& place, TileKeep& room);

    const Dropout& dropout_;
    TileSizes sizes_;
    std::size_t first_query_;
    std::vector<KeepBits> streams_;  // one; mkl head by head: one a head

    std::mutex turns_;
    std::condition_variable turn_ended_;
    std::size_t turn_ = 0;
    std::uint64_t rows_drawn_ = 0;
};

}  // namespace attn
