// Rounding to types of few bits: every value and every tie of the 16-bit types, and integers
// against exact arithmetic.
#include "core/base/stored_type.hpp"
#include "tests/support/support.hpp"

namespace low_precision_test {
namespace {

using namespace attn;

constexpr double infinity = std::numeric_limits<double>::infinity();
__extension__ using Exact = __int128;

/// A type of few bits as IEEE 754 defines it, or OCP.
struct Small {
    int fraction, bias, sign;
    int infinite;  ///< what follows the largest number: infinity, of e4m3 NaN
    int (*round)(double);
    float (*widen)(int);

    /// The value of positive finite bits; of those after the largest, what they would be.
    double value(int bits) const {
        const int exponent = bits >> fraction, rest = bits & ((1 << fraction) - 1);
        return exponent == 0 ? std::ldexp(rest, 1 - bias - fraction)
                             : std::ldexp(rest + (1 << fraction), exponent - bias - fraction);
    }
};

template <auto round, auto widen>
constexpr Small small(int fraction, int bias, int infinite) {
    using Bits = decltype(round(0));
    return {fraction,
            bias,
            1 << (8 * sizeof(Bits) - 1),
            infinite,
            [](double x) -> int { return round(x); },
            [](int bits) { return widen(static_cast<Bits>(bits)); }};
}

const Small types[] = {small<half_of_double, float_of_half>(10, 15, 0x7c00),
                       small<bfloat16_of_double, float_of_bfloat16>(7, 127, 0x7f80),
                       small<e4m3_of_double, float_of_e4m3>(3, 7, 0x7f),
                       small<e5m2_of_double, float_of_e5m2>(2, 15, 0x7c)};

/// x = significand * 2^exponent, exactly.
struct Parts {
    Exact significand;
    int exponent;
};
Parts parts(double x) {
    int exponent = 0;
    const double significand = std::frexp(x, &exponent);
    return {static_cast<Exact>(std::ldexp(significand, 53)), exponent - 53};
}

StoredWord as_int8(double x, double scale) {
    return stored(x, {.kind = NumberType::int8, .scale = scale});
}

StoredWord as_fixed(double x, int bits, int fraction) {
    return stored(x, {.kind = NumberType::fixed, .bits = bits, .fraction = fraction});
}

TEST_CASE("low precision: every value, tie and neighbour of a tie of the small types") {
    for (const Small& type : types) {
        int wrong = 0;
        const auto check = [&](double x, int bits) {
            wrong += type.round(x) == bits ? 0 : 1;
            wrong += type.round(-x) == (bits | type.sign) ? 0 : 1;
        };
        for (int bits = 0; bits < type.infinite; ++bits) {
            const double here = type.value(bits), tie = (here + type.value(bits + 1)) / 2;
            wrong += type.widen(bits) == static_cast<float>(here) ? 0 : 1;
            wrong += type.widen(bits | type.sign) == -static_cast<float>(here) ? 0 : 1;
            check(here, bits);
            check(std::nextafter(here, infinity), bits);
            check(std::nextafter(tie, 0.0), bits);
            check(tie, bits + bits % 2);
            check(std::nextafter(tie, infinity), bits + 1);
        }
        check(infinity, type.infinite);
        check(std::numeric_limits<double>::max(), type.infinite);
        check(std::numeric_limits<double>::min(), 0);
        check(std::numeric_limits<double>::denorm_min(), 0);
        const double nan = std::numeric_limits<double>::quiet_NaN();
        wrong += std::isnan(type.widen(type.round(nan))) ? 0 : 1;
        wrong += std::isnan(type.widen(type.round(-nan))) ? 0 : 1;
        // A payload in the lowest bits alone must not become infinity.
        wrong += std::isnan(type.widen(type.round(std::bit_cast<double>(0x7ff0'0000'0000'0001u))))
                     ? 0
                     : 1;
        // Bits above the largest finite number are NaN, except for those of infinity.
        for (int bits = type.infinite; bits < type.sign; ++bits)
            wrong += std::isnan(type.widen(bits)) || std::isinf(type.widen(type.infinite)) ? 0 : 1;
        CHECK(wrong == 0);
    }
}

TEST_CASE("low precision: float8 saturates at its largest finite number with SAT") {
    for (const NumberType kind : {NumberType::float8_e4m3, NumberType::float8_e5m2}) {
        const NumberTypeRow& row = row_of(kind);
        const StoredType saturates{.kind = kind, .saturates = true}, other{.kind = kind};
        const bool has_infinity = kind == NumberType::float8_e5m2;
        const double tie = row.largest + std::ldexp(row.unit, std::ilogb(row.largest));
        CAPTURE(row.name);
        for (const double x : {0.3, row.largest, tie, row.largest * 1.5, 1e300, infinity})
            for (const double sign : {1, -1}) {
                const bool is_beyond = has_infinity ? x >= tie : x > tie;
                const StoredWord most = stored(sign * x, saturates), word = stored(sign * x, other);
                CHECK(most.saturated == is_beyond);
                CHECK(word.saturated == (is_beyond && !(has_infinity && std::isinf(x))));
                const double number = stored_number(sign * x, saturates);
                CHECK(number == sign * (is_beyond ? row.largest : row.round(x)));
                CHECK(most.word == stored(number, other).word);
                CHECK(std::isfinite(stored_number(sign * x, other)) == !is_beyond);
                // A word beyond the range is right where the number may be beyond it.
                const RightWords right(other, 0);
                CHECK(right.hold(stored_number(sign * x, other), sign * x, 0));
                CHECK(right.hold(stored_number(sign * 1e300, other), sign * x, 0) == is_beyond);
                CHECK(RightWords(saturates, 0).hold(number, sign * x, 0));
            }
        CHECK(std::isnan(stored_number(std::nan(""), saturates)));
        CHECK(!stored(std::nan(""), saturates).saturated);
    }
}

TEST_CASE("low precision: float32 is rounded as float64 is, and the first overflow is found") {
    std::mt19937_64 random(33);
    int wrong = 0;
    for (const NumberType type : {NumberType::float16, NumberType::bfloat16}) {
        const double largest = row_of(type).largest;
        for (std::size_t i = 0; i < test::cases(2000000); ++i) {
            // Random bits, and neighbours of what two numbers of 16 bits have between them.
            auto bits = static_cast<std::uint32_t>(random());
            if (i % 2 == 0)
                bits = (bits & 0xfffff000u) + static_cast<std::uint32_t>(random() % 5) - 2;
            const auto x = std::bit_cast<float>(bits);
            const double expected = row_of(type).round(static_cast<double>(x));
            const float made = rounded(x, type);
            wrong += std::isnan(x) ? !std::isnan(made)
                                   : std::bit_cast<std::uint64_t>(double{made}) !=
                                         std::bit_cast<std::uint64_t>(expected);
        }
        std::array<float, 4> numbers{1, static_cast<float>(largest), 3.4e38f, -3.4e38f};
        if (type == NumberType::float16) numbers[2] = 65520;
        CHECK(round_all(std::span<float>(numbers), type) == 2);
        CHECK(round_all(std::span<float>(numbers), type) == 4);
    }
    CHECK(wrong == 0);
}

TEST_CASE("low precision: int8 is the exact quotient, rounded once") {
    std::mt19937_64 random(34);
    int wrong = 0;
    for (std::size_t i = 0; i < test::cases(300000); ++i) {
        const double scale =
            std::ldexp(1 + static_cast<double>(random() >> (12 + random() % 50)) * 0x1p-52,
                       static_cast<int>(random() % 1900) - 950);
        // Ties, their neighbours, and what is far from them.
        double x =
            (static_cast<double>(random() % 300) - 150 + 0.5 * static_cast<double>(random() % 2)) *
            scale;
        for (auto steps = random() % 3; steps > 0; --steps)
            x = std::nextafter(x, random() % 2 == 0 ? infinity : -infinity);
        if (x == 0) continue;
        const StoredWord made = as_int8(x, scale);
        // Twice the number and the scale in units of the same power of two.
        Parts a = parts(x), b = parts(scale);
        if (a.exponent < b.exponent - 60) a = {0, b.exponent};
        const int least = std::min(a.exponent, b.exponent);
        const Exact twice = 2 * a.significand * (Exact{1} << (a.exponent - least));
        const Exact unit = b.significand * (Exact{1} << (b.exponent - least));
        const Exact apart = twice - 2 * made.word * unit, size = apart < 0 ? -apart : apart;
        const bool is_nearest = size < unit || (size == unit && made.word % 2 == 0);
        const bool is_beyond = (made.word == 127 && (apart > unit || apart == unit)) ||
                               (made.word == -128 && apart < -unit);
        wrong += made.saturated ? !is_beyond : !is_nearest;
    }
    CHECK(wrong == 0);
    CHECK(as_int8(infinity, 0.5).word == 127);
    CHECK(as_int8(-infinity, 0.5).word == -128);
    CHECK(as_int8(std::numeric_limits<double>::max(), 1e-300).saturated);
    CHECK(as_int8(std::numeric_limits<double>::denorm_min(), 1e300).word == 0);
}

TEST_CASE("low precision: fixed point of every width is exact arithmetic, rounded once") {
    std::mt19937_64 random(35);
    int wrong = 0;
    for (std::size_t i = 0; i < test::cases(300000); ++i) {
        const int bits = 1 + static_cast<int>(random() % 64);
        const int fraction = static_cast<int>(random() % 2045) - 1022;
        // Whole numbers of the type, with few or many bits below the point, up to beyond its range.
        const double whole =
            std::ldexp(static_cast<double>(static_cast<std::int64_t>(random()) >> (random() % 64)),
                       -static_cast<int>(random() % 12)) *
            (random() % 8 == 0 ? 4 : 1);
        const double x = std::ldexp(whole, -fraction);
        if (!std::isfinite(x) || (x != 0 && std::abs(x) < 0x1p-1000)) continue;
        const Parts a = parts(x);
        const int shift = a.exponent + fraction;
        Exact rounded = 0;
        if (shift >= 0) {
            rounded = a.significand * (Exact{1} << std::min(shift, 70));
        } else if (shift > -100) {
            const Exact unit = Exact{1} << -shift;
            Exact rest = a.significand % unit;
            if (rest < 0) rest += unit;
            rounded = (a.significand - rest) / unit;
            if (2 * rest > unit || (2 * rest == unit && rounded % 2 != 0)) ++rounded;
        }
        const Exact limit = Exact{1} << (bits - 1);
        const Exact expected = std::clamp<Exact>(rounded, -limit, limit - 1);
        const StoredWord made = as_fixed(x, bits, fraction);
        wrong += made.word == expected && made.saturated == (expected != rounded) ? 0 : 1;
    }
    CHECK(wrong == 0);
    // Towards minus infinity, to nearest with ties up, and without the upper bits: all of few bits.
    for (const auto rounding : {FixedRounding::half_up, FixedRounding::down})
        for (int bits = 1; bits <= 6; ++bits)
            for (int quarters = -300; quarters <= 300; ++quarters) {
                const int above = rounding == FixedRounding::half_up ? quarters + 2 : quarters;
                const int whole = (above - ((above % 4) + 4) % 4) / 4, range = 1 << bits;
                const int upper = ((whole + range / 2) % range + range) % range - range / 2;
                for (const int fraction : {-3, 0, 5, 1000}) {
                    const double x = std::ldexp(quarters, -2 - fraction);
                    CHECK(fixed_whole(x, fraction, rounding) == whole);
                    CHECK(wrapped_fixed(x, bits, fraction, rounding) == upper);
                }
            }
    CHECK(fixed_whole(-0x1p-1074, -1022, FixedRounding::down) == -1);
    CHECK(wrapped_fixed(0x1p1023 + 0x1p1000, 64, -1000, FixedRounding::down) == (1 << 23) + 1);
    CHECK(as_fixed(infinity, 64, 1022).word == std::numeric_limits<std::int64_t>::max());
    CHECK(as_fixed(-infinity, 1, -1022).word == -1);
    CHECK(as_fixed(std::numeric_limits<double>::max(), 16, 1022).saturated);
}

template <class T>
constexpr bool has_type = requires {
    dtype_of<T>;
};
static_assert(has_type<float> && has_type<double> && has_type<std::int64_t>);
static_assert(!has_type<bool> && !has_type<std::int32_t> && !has_type<std::uint16_t> &&
              !has_type<std::uint64_t> && !has_type<long double>);

TEST_CASE("number types: the rows of floating-point types agree with their rounding") {
    for (const NumberTypeRow& row : number_types) {
        if (row.round == nullptr) continue;
        const NumberType type = row.type;
        CAPTURE(row.name);
        CHECK((row.round(-infinity) == -infinity) == (type != NumberType::float8_e4m3));
        CHECK(row.round(row.largest) == row.largest);
        CHECK(row.round(row.least) == row.least);
        CHECK(row.round(row.least / 2) == 0);
        CHECK(row.round(1 + row.unit) == 1);  // a tie, to even
        CHECK(row.round(1 + 2 * row.unit) == 1 + 2 * row.unit);
        CHECK(row.least_normal() / row.least * row.unit == 0.5);
        CHECK(!std::isfinite(row.round(row.largest + row.largest * row.unit)));
        if (!row.largest_text.empty())
            CHECK(row.round(std::strtod(std::string(row.largest_text).c_str(), nullptr)) ==
                  row.largest);
        CHECK(ulps_between(row.least_normal(), row.least_normal() - row.least, type) == 1);
    }
}

TEST_CASE("number types: names are unique, and only dtypes have arithmetic") {
    for (const NumberTypeRow& row : number_types) {
        CAPTURE(row.name);
        for (const auto member :
             {&NumberTypeRow::name, &NumberTypeRow::descr, &NumberTypeRow::safetensors})
            CHECK(((row.*member).empty() || find_row(number_types, member, row.*member) == &row));
        if ((row.uses & use::computes) != 0)
            CHECK(for_dtype(row.type, []<class T>(T) { return dtype_of<T>; }) ==
                  arithmetic_of(row.type));
        else
            CHECK_THROWS(for_dtype(row.type, []<class T>(T) { return dtype_of<T>; }));
    }
}

}  // namespace
}  // namespace low_precision_test
