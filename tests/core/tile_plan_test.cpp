// The strips of a tile are as long as the mask requires. What they compute: kernel_class_test.cpp.
#include "core/fused/tile_plan.hpp"
#include "tests/support/support.hpp"

namespace tile_plan_test {

using namespace attn;

TEST_CASE("strips: a window costs its own length, not that of all keys") {
    Mask mask;
    mask.add(BandRule(256, 0, 0));
    TilePlan plan;
    plan.make(mask, {0, 0, 1, 50000, 64, 0}, 0, {0, 100000}, 16, false);
    std::size_t keys = 0;
    for (const kernels::Strip& strip : plan.strips()) keys += strip.keys;
    CHECK(keys == 256 + 64);
}

}  // namespace tile_plan_test
