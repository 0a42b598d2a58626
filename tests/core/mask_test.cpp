// Masks: who may see whom, by pair and by block.
#include "core/operator/mask.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/support.hpp"

namespace mask_test {

using namespace attn;

namespace {

/// The expected `cover` of a block, from each pair.
Coverage by_pairs(const Mask& mask, const Block& b) {
    std::size_t allowed = 0;
    for (std::size_t q = 0; q < b.queries; ++q)
        for (std::size_t k = 0; k < b.keys; ++k)
            allowed += mask.allows(b.batch, b.head, b.first_query + q, b.first_key + k) ? 1u : 0u;
    if (allowed == 0) return Coverage::none;
    return allowed == b.queries * b.keys ? Coverage::all : Coverage::some;
}

/// `some` is always allowed; `all` and `none` must be true.
void check_blocks(const Mask& mask, bool exact) {
    for (std::size_t q = 0; q < 6; ++q)
        for (std::size_t k = 0; k < 6; ++k)
            for (std::size_t queries = 1; queries < 5; ++queries)
                for (std::size_t keys = 1; keys < 5; ++keys) {
                    const Block block{1, 0, q, queries, k, keys};
                    const Coverage said = mask.cover(block), truth = by_pairs(mask, block);
                    if (exact)
                        CHECK(said == truth);
                    else
                        CHECK((said == Coverage::some || said == truth));
                }
}

Mask band(std::int64_t left, std::int64_t right, std::int64_t offset) {
    Mask mask;
    mask.add(BandRule(left, right, offset));
    return mask;
}

}  // namespace

TEST_CASE("causal: a query sees itself and what is before it") {
    const Mask mask = band(-1, 0, 0);
    for (std::size_t q = 0; q < 5; ++q)
        for (std::size_t k = 0; k < 5; ++k) CHECK(mask.allows(0, 0, q, k) == (k <= q));
}

TEST_CASE("window: from p - left to p + right, with p moved by the offset") {
    const Mask mask = band(2, 1, 3);
    for (std::size_t q = 0; q < 5; ++q)
        for (std::size_t k = 0; k < 12; ++k)
            CHECK(mask.allows(0, 0, q, k) == (k + 2 >= q + 3 && k <= q + 4));
}

TEST_CASE("no rule: every query sees every key") {
    CHECK(Mask().allows(3, 2, 1000, 0));
    CHECK(Mask().cover({0, 0, 0, 9, 0, 9}) == Coverage::all);
}

TEST_CASE("blocks: bands and lengths are exact, joined rules never lie") {
    for (std::int64_t left : {-1, 0, 2})
        for (std::int64_t right : {-1, 0, 1})
            for (std::int64_t offset : {-2, 0, 3}) check_blocks(band(left, right, offset), true);
    for (std::uint64_t length : {0u, 3u, 20u}) {
        Mask mask;
        mask.add(LengthRule({7, length}));
        check_blocks(mask, true);
        mask.add(BandRule(-1, 0, 1));
        mask.add(BooleanRule(test::array_of({{1, 0, 1, 1, 0, 1, 1, 1, 1}}), true));
        check_blocks(mask, false);
    }
}

TEST_CASE("boolean masks: both polarities, every broadcast shape") {
    const auto allows = [](const Array<double>& array, bool keep, std::size_t b, std::size_t h,
                           std::size_t q,
                           std::size_t k) { return BooleanRule(array, keep).allows(b, h, q, k); };
    const Array<double> keys = test::array_of({1, 0, 1});
    CHECK(allows(keys, true, 1, 1, 1, 0));
    CHECK_FALSE(allows(keys, true, 1, 1, 1, 1));
    CHECK(allows(keys, false, 1, 1, 1, 1));
    const Array<double> pairs = test::array_of({{1, 0}, {0, 1}});
    CHECK(allows(pairs, true, 9, 9, 1, 1));
    CHECK_FALSE(allows(pairs, true, 9, 9, 0, 1));
    const Array<double> heads = test::array_of({{{1, 1}}, {{0, 0}}});
    CHECK(allows(heads, true, 5, 0, 7, 1));
    CHECK_FALSE(allows(heads, true, 5, 1, 7, 1));
    const Array<double> padding = test::array_of({{{{1, 0}}}, {{{0, 1}}}});
    CHECK(allows(padding, true, 0, 3, 4, 0));
    CHECK_FALSE(allows(padding, true, 1, 3, 4, 0));
    // A mask may stop after the valid keys; those beyond are masked whatever true means.
    CHECK_FALSE(allows(keys, true, 0, 0, 0, 3));
    CHECK_FALSE(allows(keys, false, 0, 0, 0, 3));
}

TEST_CASE("masks: a rule's answer for a block equals that for each pair") {
    const Array<double> pattern = test::array_of({{1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0},
                                                  {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                                  {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}});
    std::vector<Mask> masks(1);
    for (auto [left, right, offset] :
         {std::tuple(-1, 0, 0), {2, 0, 3}, {0, 0, -4}, {1, 2, -1}, {-1, -1, 0}, {3, -1, 2}}) {
        masks.emplace_back().add(BandRule(left, right, offset));
        masks.emplace_back().add(BandRule(left, right, offset));
        masks.back().add(LengthRule({0, 5}));
        masks.back().add(BooleanRule(pattern, false));
    }
    for (std::size_t m = 0; m < masks.size(); ++m)
        for (std::size_t batch : {0u, 1u})
            for (std::size_t first_query : {0u, 1u})
                for (std::size_t first_key : {0u, 3u, 7u})
                    for (std::size_t keys : {1u, 5u}) {
                        CAPTURE(m);
                        const Block block{batch, 0, first_query, 2, first_key, keys};
                        const KeyRange range = masks[m].range(block);
                        std::vector<std::uint64_t> seen(keys, ~std::uint64_t{0});
                        masks[m].block_unseen(block, 60, seen.data());
                        std::size_t allowed = 0;
                        for (std::size_t q = 0; q < 2; ++q)
                            for (std::size_t k = 0; k < keys; ++k) {
                                const bool allows =
                                    masks[m].allows(batch, 0, first_query + q, first_key + k);
                                CHECK((seen[k] >> (60 + q) & 1) == (allows ? 1u : 0u));
                                CHECK((seen[k] | std::uint64_t{3} << 60) == ~std::uint64_t{0});
                                const bool inside =
                                    first_key + k >= range.first && first_key + k < range.end;
                                CHECK((!allows || inside));
                                allowed += allows ? 1 : 0;
                            }
                        const Coverage cover = masks[m].cover(block);
                        if (cover == Coverage::none) CHECK(allowed == 0);
                        if (cover == Coverage::all) CHECK(allowed == 2 * keys);
                    }
}

}  // namespace mask_test
