// Numbers to text and back.
#include "io/text/number_text.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "io/read/number_array.hpp"

namespace number_text_test {

using namespace attn;
using namespace attn::io;

namespace {

template <class T>
std::string text_of(T value, std::optional<int> decimals = {}) {
    std::string text;
    append_number(text, value, decimals);
    return text;
}

}  // namespace

TEST_CASE("precision is digits after the point, rounded from the exact value") {
    CHECK(text_of(0.125, 2) == "0.12");
    CHECK(text_of(0.375, 2) == "0.38");
    CHECK(text_of(2.675, 2) == "2.67");  // the double is below 2.675
    CHECK(text_of(-1e-9f, 4) == "-0.0000");
    CHECK(text_of(3.0f, 0) == "3");
    CHECK(text_of(std::int64_t{-7}, 4) == "-7");
    CHECK(text_of(1.7976931348623157e308, 20).size() == 309 + 21);
}

TEST_CASE("loose numbers: what Python's float() takes") {
    CHECK(parse_loose_number("+1.5").value == 1.5);
    CHECK(parse_loose_number(".5").value == 0.5);
    CHECK(parse_loose_number("1.").length == 2);
    CHECK(parse_loose_number("007").value == 7);
    CHECK(parse_loose_number("-.5e1").value == -5);
    CHECK(parse_loose_number("-Infinity").value == -std::numeric_limits<double>::infinity());
    CHECK(parse_loose_number("inf").length == 3);
    CHECK(std::isnan(parse_loose_number("NaN").value));
    for (const char* bad : {"", "+", ".", "e5", "--1", "x"})
        CHECK(parse_loose_number(bad).length == 0);
}

}  // namespace number_text_test
