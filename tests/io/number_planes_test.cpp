// Number planes, read by a decoder that shares nothing with the program, bit after bit.
#include <zlib.h>

#include "io/plot/heat_map.hpp"
#include "io/plot/picture.hpp"
#include "tests/support/awkward_values.hpp"

namespace number_planes_test {
namespace {

using namespace attn;
using namespace attn::io;
using attn::test::same_bits;

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// The bytes of a zlib stream in base64.
std::string inflated(std::string_view text) {
    const std::string packed = test::from_base64(text);
    std::string bytes(std::size_t{1} << 20, '\0');
    auto size = static_cast<uLongf>(bytes.size());
    REQUIRE(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()),
                       static_cast<uLong>(packed.size())) == Z_OK);
    bytes.resize(size);
    return bytes;
}

/// As ones and zeros.
std::string bits_of(const std::string& bytes) {
    std::string bits;
    for (const char byte : bytes)
        for (int bit = 8; bit-- > 0;) bits += (byte >> bit & 1) != 0 ? '1' : '0';
    return bits;
}

std::vector<double> unpacked(const std::string& planes, const HeatPanel& panel, bool is_float32,
                             unsigned mantissa_bits) {
    const std::string high = inflated(std::string_view(planes).substr(0, planes.find(' ')));
    const std::string bits =
        bits_of(inflated(std::string_view(planes).substr(planes.find(' ') + 1)));
    const int exponent_bits = is_float32 ? 8 : 11;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    std::size_t at = 0, number = 0;
    std::vector<double> values;
    for (std::size_t cell = 0; cell < panel.values.size(); ++cell) {
        if (!panel.masked.empty() && panel.masked[cell] != 0) {
            values.push_back(panel.values[cell]);
            continue;
        }
        const int start = static_cast<unsigned char>(high.at(number)) +
                          256 * static_cast<unsigned char>(high.at(high.size() / 2 + number));
        ++number;
        double part = 0;
        for (unsigned bit = 1; bit <= mantissa_bits; ++bit)
            part += bits.at(at++) == '1' ? std::ldexp(1.0, -static_cast<int>(bit)) : 0;
        const int exponent = start & ((1 << exponent_bits) - 1);
        double size = std::ldexp(part + (exponent > 0 ? 1 : 0), std::max(exponent, 1) - bias);
        if (exponent == 2 * bias + 1)
            size = part == 0 ? std::numeric_limits<double>::infinity() : no_number;
        values.push_back(start >> exponent_bits != 0 ? -size : size);
    }
    CHECK(high.size() == 2 * number);
    CHECK(bits.size() - at < 8);
    CHECK(bits.find('1', at) == std::string::npos);
    return values;
}

/// Numbers of each kind in turn: level, of any bits, few different ones, edges among others.
template <class Float>
HeatPanel generated_panel(std::size_t cells, std::mt19937_64& random) {
    using Word = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
    static const std::vector<Float> known = test::awkward_numbers<Float>();
    const auto kind = random() % 5;
    const std::size_t different = 1 + random() % 40;
    HeatPanel panel;
    for (std::size_t i = 0; i < cells; ++i) {
        double value = 0;
        if (kind == 0) value = 1.0 / static_cast<double>(i + 1);
        if (kind == 1)
            value = static_cast<double>(std::bit_cast<Float>(static_cast<Word>(random())));
        if (kind == 2)
            value = static_cast<double>(known[random() % std::min(known.size(), different)]);
        if (kind == 3)
            value =
                random() % 4 == 0 ? static_cast<double>(known[random() % known.size()]) : -0.25 / 3;
        if (kind == 4) value = std::exp(-20.0 * static_cast<double>(random() % 1000) / 1000);
        if (!std::isfinite(static_cast<Float>(value))) value = no_number;
        panel.values.push_back(static_cast<double>(static_cast<Float>(value)));
    }
    if (random() % 2 == 0)
        for (std::size_t i = 0; i < cells; ++i) {
            panel.masked.push_back(random() % 3 == 0 ? 1 : 0);
            if (panel.masked.back() != 0) panel.values[i] = 0;
        }
    return panel;
}

template <class Float>
void check_any_panel(std::size_t cells, std::mt19937_64& random) {
    constexpr bool is_float32 = sizeof(Float) == 4;
    constexpr auto all = static_cast<unsigned>(std::numeric_limits<Float>::digits - 1);
    const HeatPanel panel = generated_panel<Float>(cells, random);
    for (unsigned kept : {all, all - 1, 11u, min_mantissa_bits}) {
        CAPTURE(cells);
        CAPTURE(kept);
        const std::string planes = number_planes(panel, is_float32, kept);
        const std::vector<double> values = unpacked(planes, panel, is_float32, kept);
        REQUIRE(values.size() == cells);
        for (std::size_t i = 0; i < cells; ++i) {
            const double value = panel.values[i];
            if (kept == all || value == 0 || std::isnan(value)) {
                REQUIRE(same_bits(values[i], value));
                continue;
            }
            const double least = static_cast<double>(std::numeric_limits<Float>::min());
            const double size = std::max(std::abs(value), least);
            const bool is_last = size > std::numeric_limits<Float>::max() * (1 - 0x1p-11);
            REQUIRE(std::abs(values[i] - value) <=
                    std::ldexp(size, -static_cast<int>(kept) - (is_last ? 0 : 1)));
        }
    }
}

TEST_CASE(
    "number planes: any numbers of either type come back, to the bit or rounded to the nearest") {
    std::mt19937_64 random(20);
    for (std::size_t round = 0; round < 300; ++round) {
        const std::size_t cells = round < 60 ? round : random() % 700;
        check_any_panel<float>(cells, random);
        check_any_panel<double>(cells, random);
    }
}

TEST_CASE("number planes: flags are bits") {
    std::mt19937_64 random(7);
    for (std::size_t size = 0; size < 70; ++size) {
        std::vector<std::uint8_t> flags;
        for (std::size_t i = 0; i < size; ++i) flags.push_back(random() % 2);
        const std::string bits = bits_of(inflated(packed_flags(flags)));
        REQUIRE(bits.size() == (size + 7) / 8 * 8);
        for (std::size_t i = 0; i < size; ++i) CHECK(bits[i] == (flags[i] != 0 ? '1' : '0'));
    }
}

TEST_CASE("number planes: the first map is exact as long as the others can give way") {
    const std::vector<PlaneCost> costs{{.high = 0, .numbers = 1e6, .mantissa_bits = 23},
                                       {.high = 0, .numbers = 1e6, .mantissa_bits = 52},
                                       {.high = 2e5, .numbers = 0, .mantissa_bits = 52}};
    const auto fitting = [&](double megabits) {
        return fitting_mantissas(costs, megabits * 1e6 / 6 + 2e5);
    };
    using Bits = std::vector<unsigned>;
    CHECK(fitting(75.1) == Bits{23, 52, 52});
    CHECK(fitting(74.9) == Bits{23, 51, 51});
    CHECK(fitting(29.1) == Bits{23, 6, 6});
    CHECK(fitting(28.9) == Bits{22, 6, 6});
    CHECK(fitting(12.1) == Bits{6, 6, 6});
    CHECK(fitting(1) == Bits{6, 6, 6});
    CHECK(plane_bytes(costs, {6, 6, 6}) == doctest::Approx(2.2e6));
}

}  // namespace
}  // namespace number_planes_test
