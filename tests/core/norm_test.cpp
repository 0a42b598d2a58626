// The norms before a layer.
#include <doctest/doctest.h>

#include <cmath>

#include "core/layer/norm.hpp"

namespace norm_test {

using namespace attn;

TEST_CASE("norm: a row has mean 0 and variance 1 before weight and bias") {
    std::vector<double> row{1, 2, 3, 6};
    normalise<double>({false, {1, 1, 2, 1}, {0, 0.5, 0, 0}, 0}, row);
    // mean 3, variance 3.5
    CHECK(row[0] == doctest::Approx(-2 / std::sqrt(3.5)));
    CHECK(row[1] == doctest::Approx(-1 / std::sqrt(3.5) + 0.5));
    CHECK(row[2] == 0);
    CHECK(row[3] == doctest::Approx(3 / std::sqrt(3.5)));
}

TEST_CASE("norm: RMS divides by the root of the mean square and eps keeps zeros finite") {
    std::vector<float> row{3, 4};
    normalise<float>({true, {1, 10}, {}, 0}, row);
    CHECK(row[0] == doctest::Approx(3 / std::sqrt(12.5)));
    CHECK(row[1] == doctest::Approx(40 / std::sqrt(12.5)));
    std::vector<float> zeros{0, 0};
    normalise<float>({true, {1, 1}, {}, 1e-6}, zeros);
    CHECK(zeros[0] == 0);
}

}  // namespace norm_test
