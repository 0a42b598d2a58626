// How far arrays are apart.
#include "core/base/difference.hpp"
#include "tests/support/support.hpp"

namespace difference_test {
namespace {

using namespace attn;
using attn::test::array_of;

Tolerance exact(NumberType type = NumberType::float32) {
    Tolerance tolerance;
    tolerance.type = type;
    return tolerance;
}

TEST_CASE("difference: the mean is finite wherever the differences are") {
    nlohmann::json a, b;
    double mean = 0;
    for (int i = 0; i < 40; ++i) {
        const double number = i % 2 == 0 ? 1.5e308 : 0.5;
        a.push_back(number);
        b.push_back(0.0);
        mean += number / 40;
        CHECK(std::isfinite(difference(array_of(a), array_of(b), {}).mean_abs));
    }
    CHECK(difference(array_of(a), array_of(b), {}).mean_abs / mean ==
          doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("difference: units in the last place of either type, across zero and powers of two") {
    const float one = 1.0f, next = std::nextafter(1.0f, 2.0f), below = std::nextafter(1.0f, 0.0f);
    const auto ulp = [](double a, double b, NumberType type) {
        return difference(array_of({a}), array_of({b}), exact(type)).max_ulp;
    };
    CHECK(ulp(one, next, NumberType::float32) == 1);
    CHECK(ulp(below, next, NumberType::float32) == 2);
    CHECK(ulp(0.0, -0.0, NumberType::float32) == 0);
    CHECK(ulp(1e-45, -1e-45, NumberType::float32) == 2);
    CHECK(ulp(1.0, std::nextafter(1.0, 2.0), NumberType::float64) == 1);
    CHECK(ulp(one, next, NumberType::float64) == std::uint64_t{1} << 29);
    CHECK(ulp(-1.7976931348623157e308, 1.7976931348623157e308, NumberType::float64) ==
          2 * std::uint64_t{0x7fefffffffffffff});
}

}  // namespace
}  // namespace difference_test
