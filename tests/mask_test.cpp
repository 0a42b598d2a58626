// Masks: who may see whom.
#include "core/mask.hpp"

#include <doctest/doctest.h>

using attn::Mask;

TEST_CASE("causal: a query sees itself and what is before it") {
    const Mask mask = Mask::causal();
    for (std::size_t q = 0; q < 5; ++q)
        for (std::size_t k = 0; k < 5; ++k) CHECK(mask.allows(q, k) == (k <= q));
}

TEST_CASE("no mask: every query sees every key") {
    CHECK(Mask::none().allows(0, 1000));
    CHECK(Mask::none().allows(1000, 0));
}
