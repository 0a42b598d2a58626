// The shortest decimals of float32 numbers: the characters of std::to_chars.
#include "io/text/shortest_float.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace shortest_float_test {

using namespace attn::io;

namespace {

std::string text_of(float value) {
    char text[max_float_length];
    return {text, write_shortest(text, value)};
}

bool agrees(float value) {
    char text[64];
    const std::string expected(text, std::to_chars(text, text + sizeof text, value).ptr);
    CAPTURE(expected);
    const std::string got = text_of(value);
    CHECK(got == expected);
    return got == expected;
}

}  // namespace

TEST_CASE("shortest: fixed or scientific, whichever is shorter") {
    CHECK(text_of(0.0f) == "0");
    CHECK(text_of(-0.0f) == "-0");
    CHECK(text_of(0.43f) == "0.43");
    CHECK(text_of(-1.5f) == "-1.5");
    CHECK(text_of(0.001f) == "0.001");
    CHECK(text_of(0.0001f) == "1e-04");
    CHECK(text_of(0.00012f) == "0.00012");
    CHECK(text_of(10000.0f) == "10000");
    CHECK(text_of(100000.0f) == "1e+05");
    CHECK(text_of(16777216.0f) == "16777216");
    CHECK(text_of(123456789.0f) == "123456792");
    CHECK(text_of(std::numeric_limits<float>::max()) == "3.4028235e+38");
    CHECK(text_of(-std::numeric_limits<float>::min()) == "-1.1754944e-38");
    CHECK(text_of(std::numeric_limits<float>::denorm_min()) == "1e-45");
}

TEST_CASE("shortest: powers of two and of ten and their neighbours, and subnormal numbers") {
    for (std::uint32_t exponent = 0; exponent < 255; ++exponent)
        for (std::uint32_t near : {0u, 1u, 2u, 0x7fffffu, 0x7ffffeu})
            agrees(std::bit_cast<float>(exponent << 23 | near));
    for (int exponent = -45; exponent <= 38; ++exponent) {
        const float power = std::strtof(("1e" + std::to_string(exponent)).c_str(), nullptr);
        for (float value : {power, std::nextafter(power, 0.0f), std::nextafter(power, 1e38f)})
            agrees(value);
    }
    for (std::uint32_t bits = 1; bits < 2000; ++bits) agrees(std::bit_cast<float>(bits));
    for (std::uint32_t bits = 1; bits < 0x800000; bits = bits * 5 / 4 + 1)
        agrees(std::bit_cast<float>(bits));
}

TEST_CASE("shortest: whole numbers") {
    for (std::uint32_t number = 1; number < 3000; ++number) agrees(static_cast<float>(number));
    for (double number = 3000; number < 1e20; number *= 1.001)
        agrees(static_cast<float>(std::floor(number)));
    for (float number : {16777215.0f, 16777216.0f, 16777218.0f, 33554432.0f, 4294967296.0f})
        agrees(number);
}

TEST_CASE("shortest: random bits, and numbers of few digits") {
    std::mt19937 random(1);
    std::size_t wrong = 0;
    for (int i = 0; i < 300000 && wrong < 10; ++i) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        if (std::isfinite(value) && !agrees(value)) ++wrong;
        const auto few = static_cast<float>(random() % 100000) / 1e5f;
        if (!agrees(few)) ++wrong;
    }
    CHECK(wrong == 0);
}

}  // namespace shortest_float_test
