// Heat maps: the value of full colour, the ticks of the bar, pooled cells; number planes, read by a
// decoder that shares nothing with the program, bit after bit.
#include <zlib.h>

#include "io/plot/heat_map.hpp"
#include "io/plot/picture.hpp"
#include "tests/support/awkward_values.hpp"
#include "tests/support/support.hpp"

namespace heat_map_test {
namespace {

using namespace attn;
using namespace attn::io;
using attn::test::same_bits;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A matrix of weights or scores, and whether its future is masked.
struct Kind {
    const char* name;
    const char* array;
    bool is_causal;
    std::function<double(std::size_t row, std::size_t column, double random)> score;
};

/// Softmax over what may be seen where the array holds weights.
Array<double> values_of(const Kind& kind, std::size_t rows, std::size_t columns) {
    std::mt19937 generator(7);
    Array<double> values = Array<double>::from_shape({rows, columns});
    const bool is_weights = kind.array == std::string_view("attention_weights");
    for (std::size_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (std::size_t column = 0; column < columns; ++column) {
            const double random = static_cast<double>(generator()) / 0x1p31 - 1;
            const bool is_seen = !kind.is_causal || column <= row;
            double& value = values(row, column) = kind.score(row, column, random);
            if (!is_weights) continue;
            value = is_seen ? std::exp(value) : 0;
            sum += value;
        }
        for (std::size_t column = 0; is_weights && column < columns; ++column)
            values(row, column) /= sum > 0 ? sum : 1;
    }
    return values;
}

double distance(std::size_t a, std::size_t b) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b));
}

const std::vector<Kind>& kinds() {
    constexpr const char *weights = "attention_weights", *scores = "scores";
    static const std::vector<Kind> all{
        {"uniform", weights, true, [](auto, auto, double r) { return r / 50; }},
        {"all equal", weights, false, [](auto, auto, double) { return 0.0; }},
        {"soft", weights, true, [](auto, auto, double r) { return 2 * r; }},
        {"soft, all seen", weights, false, [](auto, auto, double r) { return 2 * r; }},
        {"peaky", weights, true, [](auto, auto, double r) { return 9 * r; }},
        {"a sink", weights, true, [](auto, auto c, double r) { return c == 0 ? 8 : r; }},
        {"one key a query", weights, false,
         [](auto r, auto c, double) { return r == c ? 0 : -infinity; }},
        {"the key before", weights, true,
         [](auto r, auto c, double x) { return x - 3 * distance(r, c + 1); }},
        {"a slope", weights, true, [](auto r, auto c, double x) { return x - distance(r, c) / 8; }},
        {"scores", scores, true, [](auto, auto, double r) { return 3 * r; }},
        {"an outlier", scores, false,
         [](auto r, auto c, double x) { return r == 2 && c == 1 ? 1e6 : x; }},
        {"zeros", scores, false, [](auto, auto, double) { return 0.0; }},
        {"tiny", scores, false, [](auto, auto, double r) { return r * 4e-322; }},
        {"huge", scores, false, [](auto, auto, double r) { return r * 1.7e308; }},
        {"no numbers", scores, false,
         [](auto, auto c, double r) { return c % 2 == 0 ? r : infinity; }},
    };
    return all;
}

const std::vector<std::pair<std::size_t, std::size_t>> sizes{{1, 1}, {1, 24},  {24, 1},
                                                             {6, 6}, {24, 24}, {101, 101}};

HeatMap map_of(const Kind& kind, std::size_t rows, std::size_t columns,
               ColorScale scale = ColorScale::automatic, const HeatMapLimits& limits = {}) {
    const NamedArray array{kind.array, values_of(kind, rows, columns), {"q_len", "kv_len"}};
    const IsMasked is_future = [](auto, auto, std::size_t query, std::size_t key) {
        return key > query;
    };
    return make_heat_map({}, array, kind.is_causal ? is_future : IsMasked(), scale, limits);
}

template <class Check>
void for_all_maps(Check check) {
    for (const Kind& kind : kinds())
        for (const auto& size : sizes) {
            const std::size_t rows = size.first, columns = size.second;
            CAPTURE(kind.name);
            CAPTURE(rows);
            CAPTURE(columns);
            check(kind, rows, columns);
        }
}

bool is_shown(const HeatMap& map, std::size_t row, std::size_t column) {
    return !map.is_masked(0, row, column) && std::isfinite(map.value(0, row, column));
}

/// Whether most rows that have a number other than 0 have a visible cell.
bool shows_rows(const HeatMap& map, std::size_t head) {
    std::size_t seen = 0, count = 0;
    for (std::size_t row = 0; row < map.rows; ++row) {
        double largest = 0;
        for (std::size_t column = 0; column < map.columns; ++column)
            if (!map.is_masked(head, row, column) && std::isfinite(map.value(head, row, column)))
                largest = std::max(largest, map.position(head, row, column));
        count += map.panels[head].row_peak[row] > 0 ? 1U : 0U;
        seen += largest > 0.19 ? 1U : 0U;
    }
    return 2 * seen >= count;
}

TEST_CASE("heat map: the bar of every scale has 3 to 6 ticks that are correct and do not overlap") {
    for_all_maps([](const Kind& kind, std::size_t rows, std::size_t columns) {
        HeatMap map = map_of(kind, rows, columns);
        for (const auto& scale : color_scale_names) {
            map.asked = scale.first;
            CAPTURE(scale.second);
            const std::vector<ScaleTick> ticks = map.ticks();
            const double full = map.full_color(scale.first), low = map.is_diverging ? -1 : 0;
            CHECK(ticks.size() >= 3);
            CHECK(ticks.size() <= 6);
            double end = -infinity;
            for (const ScaleTick& tick : ticks) {
                CHECK(tick.position >= low);
                CHECK(tick.position <= 1);
                // 7 pixels a character on a bar of 304; texts at the ends are moved inside.
                const double wide = 7 * static_cast<double>(tick.text.size());
                const double place = 304 * (tick.position - low) / (1 - low);
                const double begin = std::clamp(place - wide / 2, 0.0, 304 - wide);
                CHECK(begin > end);
                end = begin + wide;
                if (full == 0) continue;
                double said = std::strtod(tick.text.c_str(), nullptr) / full;
                if (scale.first.kind == ColorScale::log && said != 0)
                    said = std::copysign(1 + std::log(std::abs(said)) / std::log(log_range), said);
                if (full > 1e-300) CHECK(tick.position == doctest::Approx(said).epsilon(0.01));
            }
            CHECK(map.scale_words().starts_with(scale.first.kind == ColorScale::log
                                                    ? "logarithmic scale up to "
                                                    : "full colour: "));
            const bool says_more = map.scale_words().ends_with(" and more");
            CHECK(says_more == (full > 0 && map.peak > full));
        }
    });
}

TEST_CASE("heat map: places of cells follow their numbers on every scale") {
    for_all_maps([](const Kind& kind, std::size_t rows, std::size_t columns) {
        HeatMap map = map_of(kind, rows, columns);
        for (const auto& scale : color_scale_names) {
            map.asked = scale.first;
            bool rises = true, is_inside = true;
            for (std::size_t row = 0; row < rows; ++row) {
                std::vector<std::pair<double, double>> cells;
                for (std::size_t column = 0; column < columns; ++column)
                    if (is_shown(map, row, column))
                        cells.emplace_back(map.value(0, row, column), map.position(0, row, column));
                std::sort(cells.begin(), cells.end());
                for (std::size_t i = 0; i < cells.size(); ++i) {
                    is_inside = is_inside && std::abs(cells[i].second) <= 1 &&
                                (cells[i].second >= 0 || map.is_diverging);
                    rises = rises && (i == 0 || cells[i - 1].second <= cells[i].second);
                }
            }
            CAPTURE(scale.second);
            CHECK(rises);
            CHECK(is_inside);
        }
    });
}

TEST_CASE("heat map: the automatic scale shows most rows of every head, whatever the weights are") {
    for_all_maps([](const Kind& kind, std::size_t rows, std::size_t columns) {
        const HeatMap map = map_of(kind, rows, columns);
        if (map.is_diverging) {
            CHECK(map.scale().kind == ColorScale::robust);
            return;
        }
        CHECK(shows_rows(map, 0));
        // 1 where few keys share the weight; never more than the largest weight needs.
        const double full = map.full_color(map.asked);
        CHECK(full <= 1);
        if (rows == 6 && kind.is_causal && map.peak == 1) CHECK(full == 1);
    });
    constexpr std::size_t tokens = 40;
    for (const Kind& bright : kinds())
        for (const Kind& pale : kinds()) {
            if (bright.array != pale.array || bright.array != std::string_view("attention_weights"))
                continue;
            Array<double> values = Array<double>::from_shape({2, tokens, tokens});
            auto at = values.begin();
            for (const Kind* kind : {&bright, &pale})
                at = std::ranges::copy(values_of(*kind, tokens, tokens), at).out;
            const HeatMap map =
                make_heat_map({}, {bright.array, values, {"heads", "q_len", "kv_len"}}, nullptr,
                              ColorScale::automatic, {});
            CAPTURE(bright.name);
            CAPTURE(pale.name);
            CHECK(shows_rows(map, 0));
            CHECK(shows_rows(map, 1));
        }
}

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
}  // namespace heat_map_test
