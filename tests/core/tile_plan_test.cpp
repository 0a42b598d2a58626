// Tiles cover every row once, and their strips cover every pair that the mask allows.
#include "core/fused/tile_plan.hpp"

#include <doctest/doctest.h>

#include <map>

namespace tile_plan_test {

using namespace attn;

TEST_CASE("tiles: every row is in one tile, whatever their order and splits") {
    for (bool in_order : {false, true})
        for (bool head_by_head : {false, true})
            for (std::size_t heads_per_tile : {1u, 2u})
                for (std::size_t splits : {1u, 3u})
                    for (std::size_t queries : {1u, 15u, 16u, 17u, 50u}) {
                        TileGrid grid;
                        grid.sizes = {2, 4, queries, 100};
                        grid.lanes = 16;
                        grid.heads_per_tile = heads_per_tile;
                        grid.splits = splits;
                        grid.in_order = in_order;
                        grid.head_by_head = head_by_head;
                        std::map<std::array<std::size_t, 4>, int> seen;
                        for (std::size_t tile = 0; tile < grid.tiles(); ++tile) {
                            const TilePlace place = grid.place(tile);
                            CHECK(place.heads * place.queries <= 16);
                            for (std::size_t h = 0; h < place.heads; ++h)
                                for (std::size_t q = 0; q < place.queries; ++q)
                                    ++seen[{place.batch, place.first_head + h,
                                            place.first_query + q, place.split}];
                        }
                        CHECK(seen.size() == 2 * 4 * queries * splits);
                        for (const auto& [row, count] : seen) CHECK(count == 1);
                    }
}

TEST_CASE("strips: a window costs its own length, not that of all keys") {
    Mask mask;
    mask.add(BandRule(256, 0, 0));
    TilePlan plan;
    plan.make(mask, {0, 0, 1, 50000, 64, 0}, 0, {0, 100000}, 16, false);
    std::size_t keys = 0;
    for (const kernels::Strip& strip : plan.strips()) keys += strip.keys;
    CHECK(keys == 256 + 64);
}

TEST_CASE("strips: they cover what the mask allows, hide the rest, and end with their blocks") {
    for (const auto& band : {std::pair(-1, 0), {30, 0}, {0, 0}, {7, 200}, {-1, -1}})
        for (std::size_t first_query : {0u, 100u, 250u})
            for (std::size_t vector_lanes : {2u, 4u, 16u}) {
                const int left = band.first, right = band.second;
                CAPTURE(left);
                CAPTURE(right);
                CAPTURE(first_query);
                CAPTURE(vector_lanes);
                Mask mask;
                mask.add(BandRule(left, right, 0));
                const std::size_t queries = 13;
                TilePlan plan;
                plan.make(mask, {0, 0, 1, first_query, queries, 0}, 0, {0, 300}, vector_lanes,
                          false);
                std::map<std::pair<std::size_t, std::size_t>, int> pairs;
                std::size_t end = 0;
                for (std::size_t i = 0; i < plan.strips().size(); ++i) {
                    const kernels::Strip& s = plan.strips()[i];
                    CHECK(s.first_key >= end);
                    end = s.first_key + s.keys;
                    const std::size_t block = s.first_key / kernels::block_keys;
                    CHECK((end - 1) / kernels::block_keys == block);
                    const bool last_of_block =
                        i + 1 == plan.strips().size() ||
                        plan.strips()[i + 1].first_key / kernels::block_keys != block;
                    CHECK(s.ends_block == last_of_block);
                    for (std::size_t k = 0; k < s.keys; ++k)
                        for (std::size_t lane = s.first_vector * vector_lanes;
                             lane < s.end_vector * vector_lanes && lane < queries; ++lane)
                            if (s.visible == nullptr || (s.visible[k] >> lane & 1) != 0)
                                ++pairs[{lane, s.first_key + k}];
                }
                std::size_t allowed = 0;
                for (std::size_t q = 0; q < queries; ++q)
                    for (std::size_t k = 0; k < 300; ++k)
                        if (mask.allows(0, 0, first_query + q, k)) {
                            ++allowed;
                            CHECK(pairs[{q, k}] == 1);
                        }
                CHECK(pairs.size() == allowed);
            }
}

}  // namespace tile_plan_test
