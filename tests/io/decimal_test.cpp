// Plain decimal numbers against std::from_chars, to the last bit.
#include "io/text/decimal.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <random>
#include <string>

namespace decimal_test {

using namespace attn::io;

namespace {

/// Whether read_decimal takes the text; where it does, it has to agree with from_chars.
bool takes(const std::string& text) {
    const std::string padded = text + std::string(decimal_reach, ',');
    double value = 0, expected = 0;
    const char* const end = read_decimal(padded.data(), value);
    if (end == nullptr) return false;
    std::from_chars(text.data(), text.data() + text.size(), expected);
    CAPTURE(text);
    CHECK(end == padded.data() + text.size());
    CHECK(std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(expected));
    return true;
}

template <class... Arguments>
std::string text_of(Arguments... arguments) {
    char text[400];
    return {text, std::to_chars(text, text + sizeof text, arguments...).ptr};
}

}  // namespace

TEST_CASE("decimals: common spellings are read at once") {
    for (const char* text : {"0",
                             "-0",
                             "0.0",
                             "-0.0",
                             "7",
                             "-12",
                             "1234567",
                             "0.43",
                             "-1.25",
                             "123.456",
                             "1e3",
                             "2.5e-3",
                             "-2.5E+7",
                             "0.12345678",
                             "0.123456789",
                             "0.1234567890123456",
                             "1.2345678901234567e-05",
                             "0.00000000000000001",
                             "9007199254740992e-3",
                             "9.007199254740993e15",
                             "1.0e-20"})
        CHECK(takes(text) == (std::string(text) != "9007199254740992e-3"));
}

TEST_CASE("decimals: text that is not a JSON number, or is large, is left to others") {
    for (const char* text :
         {"",         "-",    "+1",    ".5",       "1.",
          "01",       "00.5", "-01",   "1e",       "1e+",
          "1.5e",     "1.e5", "nan",   "Infinity", "abc",
          "12345678", "1e30", "1e-90", "1e99999",  "0.12345678901234567890123456",
          "--1"})
        CHECK_FALSE(takes(text));
}

TEST_CASE("decimals: random numbers in every spelling agree with from_chars") {
    std::mt19937_64 random(1);
    std::size_t taken = 0, total = 0;
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t exponent = 1023 - 60 + random() % 90;
        const auto value =
            std::bit_cast<double>((random() & ~(std::uint64_t{0x7ff} << 52)) | exponent << 52);
        for (const std::string& text :
             {text_of(value), text_of(static_cast<float>(value)),
              text_of(value, std::chars_format::scientific, 16),
              text_of(value, std::chars_format::scientific, 18),
              text_of(value, std::chars_format::fixed, static_cast<int>(random() % 20)),
              text_of(static_cast<std::int64_t>(random() >> (random() % 64)))}) {
            ++total;
            if (takes(text)) ++taken;
        }
    }
    CHECK(taken > total / 2);
}

TEST_CASE("decimals: ties between two float64 numbers go to the even one") {
    std::mt19937_64 random(2);
    for (int i = 0; i < 20000; ++i) {
        // 54 bits, the last one set, over a small power of two: a tie, written out in full.
        const std::uint64_t odd = (random() >> 10) | std::uint64_t{1} << 53 | 1;
        std::string digits = text_of(odd);
        int exponent = static_cast<int>(digits.size()) - 1;
        CHECK(takes(digits.substr(0, 1) + "." + digits.substr(1) + "e" + std::to_string(exponent)));
        if (odd < std::uint64_t{3} << 52) {
            digits = text_of(5 * odd);
            exponent = static_cast<int>(digits.size()) - 2;
            CHECK(takes(digits.substr(0, 1) + "." + digits.substr(1) + "e" +
                        std::to_string(exponent)));
        }
    }
}

}  // namespace decimal_test
