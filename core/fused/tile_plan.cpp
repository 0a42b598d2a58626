#include "core/fused/tile_plan.hpp"

#include <algorithm>

namespace attn {

using kernels::block_keys;
using kernels::Strip;

TileRange TileGrid::tiles_of(std::size_t item) const {
    const std::size_t of_head = item % items_per_head() * tiles_per_item;
    return {item / items_per_head() * query_blocks() * splits + of_head,
            std::min(tiles_per_item, query_blocks() * splits - of_head)};
}

TileRows TileGrid::rows_of(std::size_t tile) const {
    const std::size_t split = tile % splits;
    std::size_t rest = tile / splits;
    const std::size_t block = rest % query_blocks();
    rest /= query_blocks();
    const std::size_t units = sizes.heads / heads_per_tile;
    const std::size_t batch = head_by_head ? rest % sizes.batch : rest / units;
    const std::size_t unit = head_by_head ? rest / sizes.batch : rest % units;
    const std::size_t first = (in_order ? block : query_blocks() - 1 - block) * queries_per_tile();
    return {batch,
            unit * heads_per_tile,
            heads_per_tile,
            first,
            std::min(queries_per_tile(), sizes.queries - first),
            split};
}

KeyRange TileGrid::keys_of(const TileRows& rows) const {
    const std::size_t first = rows.split * keys_per_tile();
    return {first, std::min(first + keys_per_tile(), sizes.keys)};
}

void TilePlan::reserve(const Mask& mask, std::size_t keys, std::size_t vector_lanes, bool by_rows) {
    const bool has_rules = !mask.rules().empty();
    const std::size_t blocks = keys / block_keys + 2;
    strips_.reserve(blocks * (has_rules && !by_rows ? block_keys / vector_lanes : 1));
    if (has_rules) seen_.reserve(keys);
}

void TilePlan::make(const Mask& mask, const TileRows& rows, std::size_t first_query, KeyRange keys,
                    std::size_t vector_lanes, bool by_rows, bool pairs) {
    const std::size_t lanes = rows.heads * rows.queries;
    reserve(mask, keys.end - keys.first, vector_lanes, by_rows);
    first_key_ = keys.first;
    first_index_ = first_query + rows.first_query;
    vector_lanes_ = vector_lanes;
    by_rows_ = by_rows;
    vectors_ = (lanes + vector_lanes - 1) / vector_lanes;
    lanes_ = ~std::uint64_t{0} >> (64 - lanes);
    count_ = 0;

    KeyRange hull{keys.end, keys.first};
    for (std::size_t h = 0; h < rows.heads; ++h) {
        const KeyRange range = mask.range({rows.batch, rows.first_head + h, first_index_,
                                           rows.queries, keys.first, keys.end - keys.first});
        if (range.first == range.end) continue;
        hull.first = std::min(hull.first, range.first);
        hull.end = std::max(hull.end, range.end);
    }
    if (pairs && hull.first < hull.end)
        hull = {hull.first / 2 * 2, std::min((hull.end + 1) / 2 * 2, keys.end)};
    for (std::size_t first = hull.first; first < hull.end;) {
        const std::size_t end = std::min((first / block_keys + 1) * block_keys, hull.end);
        add_block(mask, rows,
                  {rows.batch, rows.first_head, first_index_, rows.queries, first, end - first});
        first = end;
    }
}

void TilePlan::add_block(const Mask& mask, const TileRows& rows, Block block) {
    bool all = true, none = true;
    for (std::size_t h = 0; h < rows.heads; ++h) {
        block.head = rows.first_head + h;
        const Coverage cover = mask.cover(block);
        all = all && cover == Coverage::all;
        none = none && cover == Coverage::none;
    }
    if (none) return;
    const auto add_whole = [&](const std::uint64_t* visible) {
        strips_.data()[count_++] = {block.first_key, block.keys, 0, vectors_, visible, true};
    };
    if (all) return add_whole(nullptr);
    std::uint64_t* seen = seen_.data() + (block.first_key - first_key_);
    std::fill_n(seen, block.keys, lanes_);
    for (std::size_t h = 0; h < rows.heads; ++h) {
        block.head = rows.first_head + h;
        mask.block_unseen(block, h * rows.queries, seen);
    }
    if (by_rows_) return add_whole(seen);
    cut_block(block);
}

/// Strips of the block, with the vectors of lanes that have visible keys in them. Along a diagonal,
/// each strip of as many keys as a vector has lanes drops one vector.
void TilePlan::cut_block(const Block& block) {
    const std::size_t before = count_;
    const std::size_t end = block.first_key + block.keys;
    const std::uint64_t vector = ~std::uint64_t{0} >> (64 - vector_lanes_);
    for (std::size_t key = block.first_key; key < end; key += vector_lanes_) {
        const std::size_t keys = std::min(vector_lanes_, end - key);
        std::uint64_t any = 0, every = ~std::uint64_t{0};
        const std::uint64_t* seen = seen_.data() + (key - first_key_);
        for (std::size_t k = 0; k < keys; ++k) {
            any |= seen[k];
            every &= seen[k];
        }
        if (any == 0) continue;
        Strip strip{key, keys, 0, vectors_, nullptr, false};
        while ((any >> (strip.first_vector * vector_lanes_) & vector) == 0) ++strip.first_vector;
        while ((any >> ((strip.end_vector - 1) * vector_lanes_) & vector) == 0) --strip.end_vector;
        const std::size_t first_lane = strip.first_vector * vector_lanes_;
        const std::size_t lanes = strip.end_vector * vector_lanes_ - first_lane;
        const std::uint64_t wanted = ~std::uint64_t{0} >> (64 - lanes) << first_lane & lanes_;
        if ((every & wanted) != wanted) strip.visible = seen;
        add_strip(strip, count_ > before);
    }
    if (count_ > before) strips_.data()[count_ - 1].ends_block = true;
}

void TilePlan::add_strip(const Strip& strip, bool may_join) {
    if (may_join) {
        Strip& last = strips_.data()[count_ - 1];
        const bool alike = last.first_vector == strip.first_vector &&
                           last.end_vector == strip.end_vector &&
                           (last.visible == nullptr) == (strip.visible == nullptr) &&
                           last.first_key + last.keys == strip.first_key;
        if (alike) {
            last.keys += strip.keys;
            return;
        }
    }
    strips_.data()[count_++] = strip;
}

}  // namespace attn
