// Mistyped words.
#include "core/base/did_you_mean.hpp"

#include <doctest/doctest.h>

using attn::nearest;

TEST_CASE("nearest: fewest edits win, a swap counts as one") {
    const std::vector<std::string> words{"seed", "heads", "d-out", "dropout"};
    CHECK(nearest("hedas", words) == "heads");
    CHECK(nearest("d_out", words) == "d-out");
    CHECK(nearest("dropuot", words) == "dropout");
    CHECK(nearest("seeed", words) == "seed");
    CHECK(nearest("", words) == "seed");
    CHECK(nearest("anything", {}).empty());
    CHECK(nearest(std::string(100000, 'x'), words) == "seed");
}
