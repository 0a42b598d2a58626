#include "core/base/stored_type.hpp"

#include <algorithm>

namespace attn {
namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// The largest number instead of those beyond it, of a floating-point type that saturates.
double within_range(double number, const StoredType& type) {
    const double largest = row_of(type.kind).largest;
    return type.saturates && std::abs(number) > largest ? std::copysign(largest, number) : number;
}

/// Whether a number has no word of a floating-point type. Infinities may have one.
bool is_beyond(double number, const StoredType& type) {
    const NumberTypeRow& row = row_of(type.kind);
    if (!(std::abs(number) > row.largest)) return false;
    const double rounded = row.round(number);
    return !std::isfinite(rounded) && (type.saturates || rounded != number);
}

/// The word of a number before those beyond the range are brought into it.
double unbounded_word(double number, const StoredType& type) {
    return type.kind == NumberType::fixed ? fixed_whole(number, type.fraction, type.rounding)
                                          : quotient_to_nearest(number, type.scale);
}

}  // namespace

NumberType StoredType::element() const {
    if (kind != NumberType::fixed) return kind;
    return bits <= 8    ? NumberType::int8
           : bits <= 16 ? NumberType::int16
           : bits <= 32 ? NumberType::int32
                        : NumberType::int64;
}

StoredWord stored(double number, const StoredType& type) {
    const auto of_float = [&](auto word_of) {
        return StoredWord{word_of(within_range(number, type)), is_beyond(number, type)};
    };
    if (type.kind == NumberType::float64) return {std::bit_cast<std::int64_t>(number), false};
    if (type.kind == NumberType::float32)
        return {std::bit_cast<std::int32_t>(static_cast<float>(number)), false};
    if (type.kind == NumberType::float16) return of_float(half_of_double);
    if (type.kind == NumberType::bfloat16) return of_float(bfloat16_of_double);
    if (type.kind == NumberType::float8_e4m3) return of_float(e4m3_of_double);
    if (type.kind == NumberType::float8_e5m2) return of_float(e5m2_of_double);
    const StoredWord saturated = quantised(unbounded_word(number, type), type.width());
    if (!type.wraps) return saturated;
    return {wrapped_fixed(number, type.bits, type.fraction, type.rounding), saturated.saturated};
}

double stored_number(double number, const StoredType& type) {
    if (!type.is_integer()) return row_of(type.kind).round(within_range(number, type));
    if (std::isnan(number) || (type.wraps && std::isinf(number))) return no_number;
    return static_cast<double>(stored(number, type).word) * type.step();
}

/// From the word of the least number to that of the largest; of words that wrap, the last is not
/// brought into the range. Of floating-point types these are the numbers themselves, and infinities
/// instead of NaN beyond the range.
RightWords::Range RightWords::range(double truth, double bound) const {
    const bool is_exact = bound == 0 || !std::isfinite(truth);
    const double least = is_exact ? truth : truth - bound, most = is_exact ? truth : truth + bound;
    if (!type_.is_integer()) {
        const auto of = [this](double number) {
            const double rounded = stored_number(number, type_);
            return std::isnan(rounded) ? std::copysign(HUGE_VAL, number) : rounded;
        };
        return {of(least), of(most)};
    }
    const double first = unbounded_word(least, type_), last = unbounded_word(most, type_);
    if (!type_.wraps) {
        const double limit = std::ldexp(1.0, type_.width() - 1);
        return {std::clamp(first, -limit, limit - 1), std::clamp(last, -limit, limit - 1)};
    }
    if (!std::isfinite(least) || !std::isfinite(most)) return {0, std::ldexp(1.0, type_.bits)};
    const double in_range = static_cast<double>(stored(least, type_).word);
    return {in_range, in_range + (last - first)};
}

bool RightWords::hold(double theirs, double truth, double bound) const {
    if (std::isnan(truth)) return std::isnan(theirs);
    const auto [first, last] = range(truth, bound);
    if (std::isnan(theirs))
        return type_.kind == NumberType::float8_e4m3 && (std::isinf(first) || std::isinf(last));
    if (!type_.is_integer())
        return (theirs >= first && theirs <= last) ||
               units_between(theirs, theirs < first ? first : last) <= units_;
    const double word = theirs / type_.step(), nearest = std::nearbyint(word);
    // Numbers may be words times a scale, rounded to float32.
    const double number = nearest * type_.step();
    const bool is_word = number == theirs || rounded_to_float32(number) == theirs;
    const double above = (is_word ? nearest : word) - (first - units_);
    if (!type_.wraps) return above >= 0 && above <= last - first + 2 * units_;
    const double words = std::ldexp(1.0, type_.bits), rest = std::fmod(above, words);
    return (rest < 0 ? rest + words : rest) <= last - first + 2 * units_;
}

double RightWords::units_between(double a, double b) const {
    if (type_.is_integer()) return std::nearbyint(std::abs(a - b) / type_.step());
    const std::uint64_t units = ulps_between(a, b, type_.kind);
    return units == std::numeric_limits<std::uint64_t>::max() ? HUGE_VAL
                                                              : static_cast<double>(units);
}

}  // namespace attn
