#include "core/base/number_type.hpp"

#include <utility>

#include "core/base/low_precision.hpp"

namespace attn {

std::string overflow_text(NumberType dtype) {
    const NumberTypeRow& row = row_of(dtype);
    const NumberTypeRow& widest = row_of(NumberType::float64);
    std::string text = "overflows " + std::string(row.name) + "; expected at most ";
    text += row.largest_text;
    if (&row != &widest) (text += ", or dtype ") += widest.name;
    return text;
}

bool holds_all(const NumberTypeRow& type, std::span<const double> numbers) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](double x) { return std::isnan(x) || type.round(x) == x; });
}

namespace {

/// How many numbers of the type lie from 0 to x, rounded to the type; negative below 0.
std::int64_t index_among_numbers(double x, const NumberTypeRow& type) {
    const double magnitude = std::abs(type.round(x));
    const double normal = type.least_normal();
    const auto of_binade = static_cast<std::int64_t>(1 / (2 * type.unit));
    std::int64_t index = 0;
    if (magnitude < normal) {
        index = static_cast<std::int64_t>(magnitude / type.least);
    } else {
        const int exponent = std::ilogb(magnitude);
        const double fraction = std::ldexp(magnitude, -exponent) - 1;
        index = (exponent - std::ilogb(normal) + 1) * of_binade +
                static_cast<std::int64_t>(fraction * static_cast<double>(of_binade));
    }
    return std::signbit(x) ? -index : index;
}

}  // namespace

namespace {

/// The bits of a float32 without the last `cut`, to nearest with ties to even; of NaN they may be
/// those of an infinity.
inline std::uint32_t without_bits(std::uint32_t bits, int cut) {
    const std::uint32_t odd = bits >> cut & 1, half = (std::uint32_t{1} << (cut - 1)) - 1;
    return (bits + half + odd) >> cut << cut;
}

inline float in_bfloat16(float x) {
    return std::isnan(x) ? x
                         : std::bit_cast<float>(without_bits(std::bit_cast<std::uint32_t>(x), 16));
}

inline float in_float16(float x) {
    constexpr float least_normal = 0x1p-14f, largest = 65504;
    const float size = std::abs(x);
    // In [1/2, 1) the distance of neighbouring numbers is that of float16's subnormal ones.
    float made = size < least_normal
                     ? (size + 0.5f) - 0.5f
                     : std::bit_cast<float>(without_bits(std::bit_cast<std::uint32_t>(size), 13));
    if (made > largest) made = std::numeric_limits<float>::infinity();
    return std::isnan(x) ? x : std::copysign(made, x);
}

}  // namespace

float rounded(float x, NumberType dtype) {
    return dtype == NumberType::bfloat16  ? in_bfloat16(x)
           : dtype == NumberType::float16 ? in_float16(x)
                                          : x;
}

double rounded(double x, NumberType dtype) {
    return is_rounded(dtype) ? double{rounded(static_cast<float>(x), dtype)} : x;
}

template <class T>
std::size_t round_all(std::span<T> numbers, NumberType dtype) {
    std::size_t first = numbers.size();
    for (std::size_t i = 0; is_rounded(dtype) && i < numbers.size(); ++i) {
        const T x = std::exchange(numbers[i], rounded(numbers[i], dtype));
        if (std::isinf(numbers[i]) && std::isfinite(x) && first == numbers.size()) first = i;
    }
    return first;
}

template std::size_t round_all(std::span<float>, NumberType);
template std::size_t round_all(std::span<double>, NumberType);

double rounded_to_float16(double x) {
    return static_cast<double>(float_of_half(half_of_double(x)));
}

double rounded_to_bfloat16(double x) {
    return static_cast<double>(float_of_bfloat16(bfloat16_of_double(x)));
}

double rounded_to_e4m3(double x) {
    return static_cast<double>(float_of_e4m3(e4m3_of_double(x)));
}

double rounded_to_e5m2(double x) {
    return static_cast<double>(float_of_e5m2(e5m2_of_double(x)));
}

std::uint64_t ulps_between(double a, double b, NumberType number_type) {
    const NumberTypeRow& type = row_of(number_type);
    if (!std::isfinite(type.round(a)) || !std::isfinite(type.round(b)))
        return a == b ? 0 : std::numeric_limits<std::uint64_t>::max();
    const std::int64_t first = index_among_numbers(a, type), second = index_among_numbers(b, type);
    // Unsigned, since the distance between the two largest numbers does not fit int64.
    return first < second ? static_cast<std::uint64_t>(second) - static_cast<std::uint64_t>(first)
                          : static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(second);
}

}  // namespace attn
