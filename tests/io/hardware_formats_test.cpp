// Headers of C and words of $readmemh by every type, rank and way an array is made: what a plain
// reader makes of the text is what the array holds, to the bit, or rounded to the stored type.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string_view>

#include "io/write/output_formats.hpp"
#include "tests/support/awkward_values.hpp"
#include "tests/support/decode.hpp"
#include "tests/support/row_stream.hpp"
#include "tests/support/support.hpp"

namespace hardware_formats_test {

using namespace attn;
using namespace attn::io;

namespace {

using Shape = std::vector<std::size_t>;
using attn::test::decode_c;
using attn::test::decode_memh;
using Words = std::vector<std::string>;

const std::vector<Shape> shapes{{1}, {70}, {1, 1}, {7, 66}, {3, 2, 5}, {2, 3, 4, 5}};
const std::vector<const char*> store_types{"float16",     "bfloat16",   "int8:0.05",
                                           "fixed:1,0",   "fixed:12,8", "fixed:16,20",
                                           "fixed:31,-3", "fixed:64,40"};

template <class T>
Report report_of(const std::string& name, const Array<T>& values, bool is_streamed = false) {
    NamedArray array{name, values, {}};
    constexpr std::string_view axes[] = {"axis0", "axis1", "axis2", "axis3"};
    REQUIRE(values.dimension() <= std::size(axes));
    array.axes.assign(axes, axes + values.dimension());
    if constexpr (std::is_floating_point_v<T>)
        if (is_streamed) {
            array.values = Array<float>();
            array.stream = test::row_stream(values, 2);
        }
    Report report;
    report.command = "attn self '*/ /* \n \\'";
    report.file = "a-b.h";
    report.arrays.push_back(std::move(array));
    return report;
}

std::string text_of(Writer write, const Report& report) {
    return test::written([&](Output& out) { write(out, report, {}); });
}

template <class T>
bool is_same(T a, T b) {
    return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

template <class T>
T number_of_c(const std::string& word) {
    if constexpr (std::is_same_v<T, std::int64_t>)
        return word == "(-9223372036854775807 - 1)" ? std::numeric_limits<T>::min()
                                                    : std::strtoll(word.c_str(), nullptr, 0);
    using Limits = std::numeric_limits<T>;
    if (word == "NAN") return Limits::quiet_NaN();
    if (word == "INFINITY") return Limits::infinity();
    if (word == "-INFINITY") return -Limits::infinity();
    if (word.find_first_of(".e") == std::string::npos) return Limits::quiet_NaN();
    if constexpr (std::is_same_v<T, float>)
        return word.back() == 'f' ? std::strtof(word.c_str(), nullptr) : Limits::quiet_NaN();
    return static_cast<T>(std::strtod(word.c_str(), nullptr));
}

template <class T>
T number_of_hex(const std::string& word) {
    const std::uint64_t bits = std::strtoull(word.c_str(), nullptr, 16);
    if constexpr (sizeof(T) == 4)
        return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
    else
        return std::bit_cast<T>(bits);
}

template <class T>
void check_own_type(const std::string& c_type, std::mt19937_64& random) {
    for (const Shape& shape : shapes)
        for (const bool is_streamed : {false, true}) {
            const Array<T> values = test::awkward_values<T>(shape, random);
            std::string sizes;
            const test::Decoded header =
                decode_c(text_of(write_c, report_of("x.7", values, is_streamed)));
            const Words& c = header.words;
            const Words memh =
                decode_memh(text_of(write_memh, report_of("x.7", values, is_streamed))).words;
            for (const std::size_t length : shape) sizes += "[" + std::to_string(length) + "]";
            CHECK(header.type == "static const " + c_type + " x_7" + sizes);
            REQUIRE(c.size() == values.size());
            REQUIRE(memh.size() == values.size());
            int wrong = 0;
            for (std::size_t i = 0; i < values.size(); ++i) {
                const T value = values.data()[i];
                wrong += is_same(number_of_c<T>(c[i]), value) ? 0 : 1;
                wrong +=
                    memh[i].size() == 2 * sizeof(T) && is_same(number_of_hex<T>(memh[i]), value)
                        ? 0
                        : 1;
            }
            CHECK(wrong == 0);
        }
}

}  // namespace

TEST_CASE("hardware formats: every type, rank and way an array is made, to the bit") {
    std::mt19937_64 random(7);
    check_own_type<float>("float", random);
    check_own_type<double>("double", random);
    check_own_type<std::int64_t>("int64_t", random);
}

TEST_CASE("hardware formats: stored types have the words of the rounded numbers") {
    std::mt19937_64 random(8);
    for (const char* name : store_types)
        for (const Shape& shape : shapes) {
            CAPTURE(name);
            StoredType type;
            REQUIRE(parse_stored_type(name, type) == "");
            CHECK(text_of(type) == name);
            auto values = test::awkward_values<double>(shape, random);
            if (type.is_integer())
                for (double& value : values) value = std::isnan(value) ? 0.25 : value;
            Report report = report_of("x", values);
            report.stored = stored_arrays(report.arrays, type);
            const std::string header = text_of(write_c, report),
                              words = text_of(write_memh, report);
            const test::Decoded read = decode_c(header);
            const Words &c = read.words, memh = decode_memh(words).words;
            const int width = type.width();
            const std::string kind = !type.is_integer() ? "uint16_t"
                                     : width <= 8       ? "int8_t"
                                     : width <= 16      ? "int16_t"
                                     : width <= 32      ? "int32_t"
                                                        : "int64_t";
            CHECK(read.type.starts_with("static const " + kind + " x["));
            REQUIRE(c.size() == values.size());
            REQUIRE(memh.size() == values.size());
            std::uint64_t saturated = 0;
            int wrong = 0;
            for (std::size_t i = 0; i < values.size(); ++i) {
                const StoredWord expected = stored(values.data()[i], type);
                saturated += expected.saturated ? 1U : 0U;
                wrong += number_of_c<std::int64_t>(c[i]) == expected.word ? 0 : 1;
                const std::uint64_t bits =
                    static_cast<std::uint64_t>(expected.word) << (64 - width) >> (64 - width);
                wrong += std::strtoull(memh[i].c_str(), nullptr, 16) == bits ? 0 : 1;
                wrong += memh[i].size() == static_cast<std::size_t>((width + 3) / 4) ? 0 : 1;
            }
            CHECK(wrong == 0);
            CHECK(report.stored->saturated[0] == saturated);
            const std::string said =
                std::to_string(saturated) + " of " + std::to_string(values.size()) + " numbers";
            CHECK((header.find(said) != std::string::npos) == (saturated != 0));
            CHECK((words.find(said) != std::string::npos) == (saturated != 0));
        }
}

TEST_CASE(
    "hardware formats: integer types refuse NaN, and arrays of one file have words of the same "
    "width") {
    StoredType type;
    REQUIRE(parse_stored_type("fixed:8,4", type) == "");
    auto with_nan = Array<double>::from_shape({2, 2});
    with_nan.data()[3] = std::nan("");
    const Report nan = report_of("x", with_nan);
    CHECK_THROWS_WITH(stored_arrays(nan.arrays, type),
                      doctest::Contains("x[1, 1] is NaN, which no integer holds"));
    Report mixed = report_of("x", Array<float>::from_shape({2}));
    mixed.arrays.push_back(report_of("n", Array<double>::from_shape({2})).arrays[0]);
    CHECK_THROWS_WITH(text_of(write_memh, mixed),
                      doctest::Contains("x has words of 32 bits and n of 64"));
    const Report two = [] {
        Report report = report_of("x", Array<float>::from_shape({4, 5}));
        report.arrays.push_back(report_of("y", Array<float>::from_shape({2})).arrays[0]);
        return report;
    }();
    const std::string text = text_of(write_memh, two);
    CHECK(text.find("\n@0\n") != std::string::npos);
    CHECK(text.find("\n@14\n") != std::string::npos);
}

}  // namespace hardware_formats_test
