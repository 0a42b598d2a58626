// Packed numbers, read by a decoder that shares nothing with the program, bit after bit.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "io/plot/html.hpp"
#include "io/plot/packed.hpp"
#include "tests/support/support.hpp"

using namespace attn;
using namespace attn::io;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// As ones and zeros.
std::string bits_of(const std::string& text) {
    std::string digits;
    for (char c = '!'; c <= '~'; ++c)
        if (std::strchr("\"<\\", c) == nullptr) digits += c;
    REQUIRE(text.find_first_not_of(digits) == std::string::npos);
    REQUIRE(text.size() % 2 == 0);
    std::string bits;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const std::size_t pair = 91 * digits.find(text[i]) + digits.find(text[i + 1]);
        REQUIRE(pair < 8192);
        for (std::size_t bit = 13; bit-- > 0;) bits += (pair >> bit & 1) != 0 ? '1' : '0';
    }
    return bits;
}

std::map<std::string, std::size_t> symbols_of(const std::vector<std::uint8_t>& lengths) {
    std::map<std::string, std::size_t> symbols;
    std::size_t code = 0, before = 0;
    for (std::size_t length = 1; length < 16; ++length)
        for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
            if (lengths[symbol] != length) continue;
            code <<= length - before;
            before = length;
            std::string text;
            for (std::size_t bit = length; bit-- > 0;) text += (code >> bit & 1) != 0 ? '1' : '0';
            symbols[text] = symbol;
            ++code;
        }
    if (symbols.size() > 1) REQUIRE(code == std::size_t{1} << before);  // no code is left
    return symbols;
}

std::vector<double> unpacked(const PackedNumbers& packed, const HeatPanel& panel, bool is_float32) {
    const std::string bits = bits_of(packed.text);
    const auto symbols = symbols_of(packed.lengths);
    const int exponent_bits = is_float32 ? 8 : 11;
    const double bias = std::ldexp(1.0, exponent_bits - 1) - 1;
    std::size_t at = 0;
    std::vector<double> values;
    for (std::size_t cell = 0; cell < panel.values.size(); ++cell) {
        if (!panel.blocked.empty() && panel.blocked[cell] != 0) {
            values.push_back(panel.values[cell]);
            continue;
        }
        std::string code;
        while (symbols.count(code) == 0 && code.size() < 16) code += bits.at(at++);
        const std::size_t symbol = symbols.at(code);
        if (symbol < packed.whole.size()) {
            values.push_back(packed.whole[symbol]);
            continue;
        }
        double part = 0;
        for (unsigned bit = 1; bit <= packed.mantissa_bits; ++bit)
            part += bits.at(at++) == '1' ? std::ldexp(1.0, -static_cast<int>(bit)) : 0;
        const std::uint32_t binade = packed.binades.at(symbol - packed.whole.size());
        const std::uint32_t exponent = binade & ((1u << exponent_bits) - 1);
        const double size = std::ldexp(part + (exponent > 0 ? 1 : 0),
                                       static_cast<int>(std::max(exponent, 1u) - bias));
        values.push_back(binade >> exponent_bits != 0 ? -size : size);
    }
    CHECK(bits.size() - at < 13);
    CHECK(bits.find('1', at) == std::string::npos);
    return values;
}

bool same_bits(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) ||
           std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

template <class Float>
std::vector<double> edges() {
    using Limits = std::numeric_limits<Float>;
    std::vector<Float> positive{0,
                                1,
                                2,
                                Float{1} / 3,
                                Limits::denorm_min(),
                                3 * Limits::denorm_min(),
                                Limits::min(),
                                Limits::min() - Limits::denorm_min(),
                                Limits::max(),
                                Limits::max() / 2,
                                Limits::epsilon(),
                                1 - Limits::epsilon() / 2};
    std::vector<double> all{no_number};
    for (Float value : positive) {
        all.push_back(static_cast<double>(value));
        all.push_back(-static_cast<double>(value));
    }
    return all;
}

/// Numbers of each kind in turn: level, of any bits, few different ones, edges among others.
template <class Float>
HeatPanel generated_panel(std::size_t cells, std::mt19937_64& random) {
    using Word = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
    const std::vector<double> known = edges<Float>();
    const auto kind = random() % 5;
    const std::size_t different = 1 + random() % 40;
    HeatPanel panel;
    for (std::size_t i = 0; i < cells; ++i) {
        double value = 0;
        if (kind == 0) value = 1.0 / static_cast<double>(i + 1);
        if (kind == 1)
            value = static_cast<double>(std::bit_cast<Float>(static_cast<Word>(random())));
        if (kind == 2) value = known[random() % std::min(known.size(), different)];
        if (kind == 3) value = random() % 4 == 0 ? known[random() % known.size()] : -0.25 / 3;
        if (kind == 4) value = std::exp(-20.0 * static_cast<double>(random() % 1000) / 1000);
        if (!std::isfinite(static_cast<Float>(value))) value = no_number;
        panel.values.push_back(static_cast<double>(static_cast<Float>(value)));
    }
    if (random() % 2 == 0)
        for (std::size_t i = 0; i < cells; ++i) {
            panel.blocked.push_back(random() % 3 == 0 ? 1 : 0);
            if (panel.blocked.back() != 0) panel.values[i] = 0;
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
        const PackedNumbers packed = packed_numbers(panel, is_float32, kept);
        const std::vector<double> values = unpacked(packed, panel, is_float32);
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

}  // namespace

TEST_CASE("packed: any numbers of either type come back, to the bit or rounded to the nearest") {
    std::mt19937_64 random(20);
    for (std::size_t round = 0; round < 300; ++round) {
        const std::size_t cells = round < 60 ? round : random() % 700;
        check_any_panel<float>(cells, random);
        check_any_panel<double>(cells, random);
    }
}

TEST_CASE("packed: a code of every length, where numbers are as rare as they can be") {
    HeatPanel panel;
    for (int binade = 0, count = 1; binade < 18; ++binade, count *= 2)
        for (int i = 0; i < count; ++i)
            panel.values.push_back(std::ldexp(1.0 + i % 7 / 8.0, -binade));
    const PackedNumbers packed = packed_numbers(panel, true, 23);
    CHECK(*std::max_element(packed.lengths.begin(), packed.lengths.end()) == 15);
    CHECK(unpacked(packed, panel, true) == panel.values);
}

TEST_CASE("packed: flags are bits") {
    std::mt19937_64 random(7);
    for (std::size_t size = 0; size < 70; ++size) {
        std::vector<std::uint8_t> flags;
        for (std::size_t i = 0; i < size; ++i) flags.push_back(random() % 2);
        const std::string bits = bits_of(packed_flags(flags));
        REQUIRE(bits.size() == (size + 12) / 13 * 13);
        for (std::size_t i = 0; i < size; ++i) CHECK(bits[i] == (flags[i] != 0 ? '1' : '0'));
    }
}

TEST_CASE("packed: the first map is exact as long as the others can give way") {
    const std::vector<PackingCost> costs{{.fixed = 0, .numbers = 1e6, .mantissa_bits = 23},
                                         {.fixed = 0, .numbers = 1e6, .mantissa_bits = 52},
                                         {.fixed = 13e5, .numbers = 0, .mantissa_bits = 52}};
    const auto fitting = [&](double megabits) {
        return fitting_mantissas(costs, (megabits * 1e6 + 13e5) * 2 / 13);
    };
    using Bits = std::vector<unsigned>;
    CHECK(fitting(75.1) == Bits{23, 52, 52});
    CHECK(fitting(74.9) == Bits{23, 51, 51});
    CHECK(fitting(29.1) == Bits{23, 6, 6});
    CHECK(fitting(28.9) == Bits{22, 6, 6});
    CHECK(fitting(12.1) == Bits{6, 6, 6});
    CHECK(fitting(1) == Bits{6, 6, 6});
    CHECK(packed_bytes(costs, {6, 6, 6}) == doctest::Approx(13.3e6 * 2 / 13));
}
