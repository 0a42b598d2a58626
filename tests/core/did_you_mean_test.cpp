// Mistyped words.
#include "core/base/did_you_mean.hpp"

#include <doctest/doctest.h>

namespace did_you_mean_test {

using attn::did_you_mean;

TEST_CASE("did_you_mean: fewest edits win, a swap counts as one") {
    const std::vector<std::string> words{"seed", "heads", "d-out", "dropout", "model-config"};
    CHECK(did_you_mean("hedas", words) == "heads");
    CHECK(did_you_mean("d_out", words) == "d-out");
    CHECK(did_you_mean("D-OUT", words) == "d-out");
    CHECK(did_you_mean("dropuot", words) == "dropout");
    CHECK(did_you_mean("seeed", words) == "seed");
    CHECK(did_you_mean("config", words) == "model-config");
    CHECK(did_you_mean("dropout-rate", words) == "dropout");
    // Both have it as a piece; one of them little else.
    CHECK(did_you_mean("head", {"csv-header", "heads"}) == "heads");
}

TEST_CASE("did_you_mean: a word that is far from all of them is near to none") {
    const std::vector<std::string> words{"seed", "heads", "d-out", "dropout"};
    for (const char* far : {"", "x", "h", "bogus", "json", "trip", "size", "no-causal"}) {
        CAPTURE(far);
        CHECK(did_you_mean(far, words).empty());
    }
    CHECK(did_you_mean("anything", {}).empty());
    CHECK(did_you_mean(std::string(100000, 'x'), words).empty());
}

}  // namespace did_you_mean_test
