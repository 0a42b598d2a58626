// A tile's blocks of keys, and tiles of one head that are computed together, block by block.
#pragma once

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

inline constexpr std::size_t no_block = ~std::size_t{0};

/// Strips [first, end) of one block.
struct BlockStrips {
    const Strip *first, *end;
};

/// The blocks of a tile that are not yet computed.
class TileBlocks {
public:
    template <class T>
    explicit TileBlocks(const Tile<T>& tile)
        : next_(tile.strips), end_(tile.strips + tile.strip_count) {}

    /// The next one; no_block after the last.
    std::size_t next() const { return next_ == end_ ? no_block : next_->first_key / block_keys; }

    /// The strips of the next block; there must be one.
    BlockStrips take() {
        const Strip* const first = next_;
        while (!next_++->ends_block) {
        }
        return {first, next_};
    }

private:
    const Strip *next_, *end_;
};

/// Computes tiles of one head block by block: each block for every tile to which it is visible. A
/// Computation has start(share, shares), next_block() and compute_block().
template <class Computation>
inline void run_tiles(Computation* tiles, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) tiles[i].start(i, count);
    for (;;) {
        std::size_t block = no_block;
        for (std::size_t i = 0; i < count; ++i)
            if (tiles[i].next_block() < block) block = tiles[i].next_block();
        if (block == no_block) return;
        for (std::size_t i = 0; i < count; ++i)
            if (tiles[i].next_block() == block) tiles[i].compute_block();
    }
}

}  // namespace
}  // namespace attn::kernels
