#include "core/base/number_type.hpp"

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
