// Shares of every small question for any number of ranks: each element is computed once, and ranks
// have equal work.
#include "core/plan/division.hpp"
#include "tests/support/support.hpp"

namespace division_test {
namespace {

using namespace attn;

/// Calls `use` with every division of small questions.
template <class Use>
void for_each_division(Use use) {
    for (std::size_t batch = 1; batch <= 4; ++batch)
        for (std::size_t kv_heads = 1; kv_heads <= 6; ++kv_heads)
            for (std::size_t group = 1; group <= 2; ++group)
                for (std::size_t ranks = 1; ranks <= 12; ++ranks)
                    for (unsigned kind = 0; kind < 64; ++kind) {
                        Plan plan;
                        plan.batch = batch;
                        plan.kv_heads = kv_heads;
                        plan.heads = kv_heads * group;
                        plan.projects = (kind & 1U) != 0;
                        plan.packed = (kind & 2U) != 0;
                        plan.config.alibi = (kind & 4U) != 0;
                        if ((kind & 8U) != 0) plan.config.kv_lengths.resize(batch);
                        if ((kind & 16U) != 0) plan.operands["mask"] = {kv_heads * group, 2, 2};
                        if ((kind & 32U) != 0) plan.operands["key_padding_mask"] = {batch, 2};
                        use(plan, ranks);
                    }
}

TEST_CASE("division: every batch entry, head and row belongs to one rank") {
    constexpr std::size_t rows = 23;
    for_each_division([](const Plan& plan, std::size_t ranks) {
        std::vector<int> owners(plan.batch * plan.heads * rows);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const Share share = share_of(plan, rank, ranks);
            REQUIRE(share.ring_rank < share.ring_size);
            REQUIRE(share.heads.count * plan.kv_heads == share.kv_heads.count * plan.heads);
            REQUIRE(share.heads.first * plan.kv_heads == share.kv_heads.first * plan.heads);
            REQUIRE(share.heads.count * share.head_parts == plan.heads);
            const bool heads_whole = plan.projects || plan.packed || plan.config.alibi ||
                                     (!plan.operands["mask"].empty() && plan.heads > 1);
            const bool batch_whole =
                !plan.config.kv_lengths.empty() || !plan.operands["key_padding_mask"].empty();
            REQUIRE((!heads_whole || share.head_parts == 1));
            const std::size_t batch_parts = batch_whole ? 1 : std::gcd(plan.batch, ranks);
            REQUIRE(share.batches.count * batch_parts == plan.batch);
            if (!heads_whole)
                REQUIRE(share.head_parts == std::gcd(plan.kv_heads, ranks / batch_parts));
            for (std::size_t b = 0; b < share.batches.count; ++b)
                for (std::size_t h = 0; h < share.heads.count; ++h)
                    for (const IndexRange& chunk :
                         chunks_of(rows, share.ring_rank, share.ring_size))
                        for (std::size_t row = 0; row < chunk.count; ++row)
                            ++owners[((share.batches.first + b) * plan.heads + share.heads.first +
                                      h) *
                                         rows +
                                     chunk.first + row];
        }
        REQUIRE(std::all_of(owners.begin(), owners.end(), [](int count) { return count == 1; }));
    });
}

TEST_CASE("division: causal work with the keys of each other rank differs by less than a tenth") {
    constexpr std::size_t length = 4000;
    for (std::size_t ranks = 1; ranks <= 16; ++ranks)
        for (std::size_t keys_of = 0; keys_of < ranks; ++keys_of) {
            double least = 1e300, most = 0;
            for (std::size_t rank = 0; rank < ranks; ++rank) {
                double pairs = 0;
                for (const IndexRange& queries : chunks_of(length, rank, ranks))
                    for (const IndexRange& keys : chunks_of(length, keys_of, ranks))
                        for (std::size_t q = 0; q < queries.count; ++q) {
                            const std::size_t seen = queries.first + q + 1;
                            pairs += static_cast<double>(
                                std::min(keys.count, seen - std::min(seen, keys.first)));
                        }
                least = std::min(least, pairs);
                most = std::max(most, pairs);
            }
            CHECK(most <= 1.1 * least);
        }
}

}  // namespace
}  // namespace division_test
