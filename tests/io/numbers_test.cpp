// Numbers to text and back: decimals against std::from_chars and std::to_chars, to the last bit.
#include <charconv>

#include "io/read/number_array.hpp"
#include "io/text/decimal.hpp"
#include "io/text/number_text.hpp"
#include "tests/support/support.hpp"

namespace numbers_test {
namespace {

using namespace attn;
using namespace attn::io;

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
std::string chars_of(Arguments... arguments) {
    char text[400];
    return {text, std::to_chars(text, text + sizeof text, arguments...).ptr};
}

std::string shortest(float value) {
    char text[max_float_length];
    return {text, write_shortest(text, value)};
}

void check_shortest(float value) {
    if (std::isfinite(value)) CHECK(shortest(value) == chars_of(value));
}

TEST_CASE("decimals: random numbers in every spelling agree with from_chars") {
    std::mt19937_64 random(1);
    std::size_t taken = 0, total = 0;
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t exponent = 1023 - 60 + random() % 90;
        const auto value =
            std::bit_cast<double>((random() & ~(std::uint64_t{0x7ff} << 52)) | exponent << 52);
        for (const std::string& text :
             {chars_of(value), chars_of(static_cast<float>(value)),
              chars_of(value, std::chars_format::scientific, 16),
              chars_of(value, std::chars_format::scientific, 18),
              chars_of(value, std::chars_format::fixed, static_cast<int>(random() % 20)),
              chars_of(static_cast<std::int64_t>(random() >> (random() % 64)))}) {
            ++total;
            if (takes(text)) ++taken;
        }
    }
    CHECK(taken > total / 2);
    // It reads neither what JSON does not allow nor large numbers.
    for (const char* text : {"", "-", "+1", ".5", "1.", "01", "-01", "1e", "1e+", "1.e5", "nan",
                             "Infinity", "12345678", "1e30", "1e-90", "--1"})
        CHECK_FALSE(takes(text));
}

TEST_CASE("decimals: ties between two float64 numbers go to the even one") {
    std::mt19937_64 random(2);
    for (int i = 0; i < 20000; ++i) {
        // 54 bits, the last one set, over a small power of two: a tie, written out in full.
        const std::uint64_t odd = (random() >> 10) | std::uint64_t{1} << 53 | 1;
        const auto scientific = [](const std::string& digits, std::size_t power) {
            return digits.substr(0, 1) + "." + digits.substr(1) + "e" +
                   std::to_string(digits.size() - power);
        };
        CHECK(takes(scientific(chars_of(odd), 1)));
        if (odd < std::uint64_t{3} << 52) CHECK(takes(scientific(chars_of(5 * odd), 2)));
    }
}

TEST_CASE("shortest: fixed or scientific, whichever is shorter") {
    CHECK(shortest(0.0001f) == "1e-04");
    CHECK(shortest(0.00012f) == "0.00012");
    CHECK(shortest(100000.0f) == "1e+05");
    for (std::uint32_t exponent = 0; exponent < 255; ++exponent)
        for (std::uint32_t near : {0u, 1u, 2u, 0x7fffffu, 0x7ffffeu})
            check_shortest(std::bit_cast<float>(exponent << 23 | near));
    for (int exponent = -45; exponent <= 38; ++exponent) {
        const float power = std::strtof(("1e" + std::to_string(exponent)).c_str(), nullptr);
        for (float value : {power, std::nextafter(power, 0.0f), std::nextafter(power, 1e38f)})
            check_shortest(value);
    }
    for (std::uint32_t number = 1; number < 3000; ++number) {
        check_shortest(static_cast<float>(number));
        check_shortest(-std::bit_cast<float>(number * number * number));
    }
    for (double number = 3000; number < 1e20; number *= 1.001)
        check_shortest(static_cast<float>(std::floor(number)));
    std::mt19937 random(1);
    for (int i = 0; i < 300000; ++i) {
        check_shortest(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
        check_shortest(static_cast<float>(random() % 100000) / 1e5f);
    }
}

}  // namespace
}  // namespace numbers_test
