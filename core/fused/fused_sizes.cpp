#include "core/fused/fused_sizes.hpp"

#include <algorithm>

namespace attn {
namespace {

constexpr std::size_t few_rows = 512;

/// Up to this many queries per key head, rows are computed one by one: they do not fill a vector.
constexpr std::size_t row_by_row = 4;

/// Several tiles if keys and values exceed the cache and enough items remain for all threads.
std::size_t choose_tiles_per_item(const FusedSizes& s, const TileGrid& grid) {
    constexpr std::size_t items_per_thread = 4;
    const bool many = outgrow_cache(static_cast<double>(s.sizes.keys) *
                                    static_cast<double>((s.d_k + s.d_v) * s.element));
    const bool enough = grid.tiles() >= kernels::max_tiles_per_item * items_per_thread * s.threads;
    return grid.parts == 1 && many && enough ? kernels::max_tiles_per_item : 1;
}

}  // namespace

bool FusedSizes::by_rows() const {
    return group() * sizes.queries <= row_by_row;
}

TileGrid FusedSizes::grid() const {
    TileGrid grid;
    grid.sizes = sizes;
    grid.lanes = lanes;
    grid.head_by_head = head_by_head;
    grid.in_order = drops || rows_in_order;
    // Few queries of several heads that share keys fill one tile together.
    if (!grid.in_order)
        for (std::size_t heads = 2; heads <= std::min(group(), lanes); ++heads)
            if (group() % heads == 0 && heads * sizes.queries <= lanes) grid.heads_per_tile = heads;
    const bool few = sizes.batch * sizes.heads * sizes.queries <= few_rows;
    if (few && !grid.in_order && !weights && sizes.keys >= 2 * part_keys)
        grid.parts = (sizes.keys + part_keys - 1) / part_keys;
    if (!grid.in_order && !weights && !scores && !by_rows())
        grid.tiles_per_item = choose_tiles_per_item(*this, grid);
    return grid;
}

std::size_t FusedSizes::scratch() const {
    return by_rows() ? kernels::row_scratch_size(d_k) : kernels::scratch_size(lanes, d_k, d_v);
}

std::size_t FusedSizes::weights_space() const {
    return by_rows() ? kernels::block_keys : kernels::weights_size(lanes, sizes.keys, weights);
}

}  // namespace attn
