// Numbers from text; see number_array.hpp.
#include "io/number_array.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "io/source.hpp"

namespace attn::io {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::size_t digits(std::string_view text, std::size_t from) {
    std::size_t to = from;
    while (to < text.size() && is_digit(text[to])) ++to;
    return to;
}

/// End of the fraction and exponent that start at `from`; `from` itself where there is none.
/// A '.' or 'e' without digits after it is not taken.
std::size_t skip_fraction_and_exponent(std::string_view text, std::size_t from) {
    if (from < text.size() && text[from] == '.') {
        const std::size_t end = digits(text, from + 1);
        if (end > from + 1) from = end;
    }
    if (from < text.size() && (text[from] == 'e' || text[from] == 'E')) {
        std::size_t at = from + 1;
        if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
        const std::size_t end = digits(text, at);
        if (end > at) from = end;
    }
    return from;
}

double to_double(std::string_view number) {
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    // from_chars tells overflow and underflow apart no further than "out of range"; strtod does.
    if (error == std::errc::result_out_of_range)
        value = std::strtod(std::string(number).c_str(), nullptr);
    return value;
}

bool starts_with_word(std::string_view text, std::string_view word) {
    return text.size() >= word.size() &&
           std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
               return a == std::tolower(static_cast<unsigned char>(b));
           });
}

}  // namespace

Array<double> NumberArray::to_array() const {
    Array<double> array = Array<double>::from_shape(shape);
    std::copy(values.begin(), values.end(), array.begin());
    return array;
}

ParsedNumber parse_json_number(std::string_view text) {
    const std::size_t start = text.starts_with('-') ? 1 : 0;
    const std::size_t whole = digits(text, start);
    if (whole == start) return {};
    if (text[start] == '0' && whole > start + 1) return {};  // JSON has no leading zeros
    const std::size_t end = skip_fraction_and_exponent(text, whole);
    return {to_double(text.substr(0, end)), end};
}

ParsedNumber parse_loose_number(std::string_view text) {
    const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    const std::string_view rest = text.substr(sign);
    const double factor = text.starts_with('-') ? -1 : 1;
    for (std::string_view word : {"infinity", "inf"})
        if (starts_with_word(rest, word))
            return {factor * std::numeric_limits<double>::infinity(), sign + word.size()};
    if (starts_with_word(rest, "nan")) return {std::numeric_limits<double>::quiet_NaN(), sign + 3};

    const std::size_t whole = digits(rest, 0);
    std::size_t end = skip_fraction_and_exponent(rest, whole);
    if (whole == 0 && (end == 0 || rest[0] != '.')) return {};
    if (end == whole && end < rest.size() && rest[end] == '.') ++end;  // "1."
    return {factor * to_double(rest.substr(0, end)), sign + end};
}

std::string complaint(double value, std::string_view text, const ArrayRules& rules) {
    const bool spelled = std::none_of(text.begin(), text.end(), is_digit);  // NaN, -Infinity
    if (spelled && !rules.nonfinite)
        return shortened(text) + " is not finite; expected a finite number";
    if (spelled) return {};
    if (std::isinf(value))
        return shortened(text) + " overflows float64; expected at most 1.7976931348623157e308";
    if (rules.dtype == Dtype::float32 && std::isinf(static_cast<float>(value)))
        return shortened(text) +
               " overflows float32; expected at most 3.4028235e38, or dtype float64";
    return {};
}

}  // namespace attn::io
