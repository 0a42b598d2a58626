#include "io/read/number_array.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

#include "io/file/source.hpp"
#include "io/read/element_type.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::pair<std::string_view, double> json_words[] = {
    {"NaN", nan},     {"Infinity", infinity},     {"-Infinity", -infinity},
    {"\"NaN\"", nan}, {"\"Infinity\"", infinity}, {"\"-Infinity\"", -infinity}};

std::size_t digits(std::string_view text, std::size_t from) {
    std::size_t to = from;
    while (to < text.size() && is_digit(text[to])) ++to;
    return to;
}

/// End of the fraction and exponent that start at `from`; `from` if there is none. A '.' or 'e'
/// without digits after it is not taken.
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

/// The nearest number; empty if that is beyond T's range. libc++ before version 20 has no
/// from_chars for these types.
template <class T>
std::optional<T> nearest_number(std::string_view number) {
    T value = 0;
#ifdef __cpp_lib_to_chars
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc{}) return std::nullopt;
#else
    const std::string text(number);
    if constexpr (std::is_same_v<T, float>)
        value = std::strtof(text.c_str(), nullptr);
    else
        value = std::strtod(text.c_str(), nullptr);
    if (std::isinf(value)) return std::nullopt;
#endif
    return value;
}

double to_double(std::string_view number) {
    const std::optional<double> value = nearest_number<double>(number);
    // from_chars does not distinguish overflow from underflow; strtod does.
    return value ? *value : std::strtod(std::string(number).c_str(), nullptr);
}

bool starts_with_word(std::string_view text, std::string_view word) {
    return text.size() >= word.size() &&
           std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
               return a == std::tolower(static_cast<unsigned char>(b));
           });
}

/// 0 if the text is not an integer of at most 64 bits and a sign.
double rounding_error_of(std::string_view text) {
    const bool is_negative = text.starts_with('-');
    if (is_negative || text.starts_with('+')) text.remove_prefix(1);
    const auto integer = number_of_text<std::uint64_t>(text);
    if (!integer) return 0;
    return is_negative ? -rounding_error(*integer) : rounding_error(*integer);
}

}  // namespace

ParsedNumber parse_json_number(std::string_view text) {
    const std::size_t start = text.starts_with('-') ? 1 : 0;
    const std::size_t whole = digits(text, start);
    if (whole == start) return {};
    if (text[start] == '0' && whole > start + 1) return {};  // JSON has no leading zeros
    const std::size_t end = skip_fraction_and_exponent(text, whole);
    return {to_double(text.substr(0, end)), end};
}

ParsedNumber parse_json_number_or_word(std::string_view text) {
    const ParsedNumber number = parse_json_number(text);
    if (number.length != 0) return number;
    for (const auto& [word, value] : json_words)
        if (text.starts_with(word)) return {value, word.size()};
    return {};
}

ParsedNumber parse_loose_number(std::string_view text) {
    const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    const std::string_view rest = text.substr(sign);
    const double factor = text.starts_with('-') ? -1 : 1;
    for (std::string_view word : {"infinity", "inf"})
        if (starts_with_word(rest, word)) return {factor * infinity, sign + word.size()};
    if (starts_with_word(rest, "nan")) return {nan, sign + 3};

    const std::size_t whole = digits(rest, 0);
    std::size_t end = skip_fraction_and_exponent(rest, whole);
    if (whole == 0 && (end == 0 || rest[0] != '.')) return {};
    if (end == whole && end < rest.size() && rest[end] == '.') {  // "1." and "1.e-05"
        ++end;
        if (end < rest.size() && rest[end] != '.') end = skip_fraction_and_exponent(rest, end);
    }
    return {factor * to_double(rest.substr(0, end)), sign + end};
}

std::string complaint(double value, std::string_view text, const ArrayRules& rules) {
    const bool spelled = std::ranges::none_of(text, is_digit);  // NaN, -Infinity
    if (spelled && !rules.nonfinite)
        return shortened(text) + " is not finite; expected a finite number";
    if (spelled) return {};
    if (std::isinf(value)) return shortened(text) + " " + overflow_text(NumberType::float64);
    if (overflows(value, rules.dtype)) return shortened(text) + " " + overflow_text(rules.dtype);
    return {};
}

double rounded_once(double value, std::string_view text, NumberType dtype) {
    if (arithmetic_of(dtype) != NumberType::float32 || !std::isfinite(value)) return value;
    if (text.starts_with('+')) text.remove_prefix(1);
    const std::optional<float> nearest = nearest_number<float>(text);
    const bool differs = nearest && *nearest != static_cast<float>(value);
    return differs ? static_cast<double>(*nearest) : value;
}

double stored_number(double value, std::string_view text, const ArrayRules& rules) {
    return rules.rounding_errors ? rounding_error_of(text) : rounded_once(value, text, rules.dtype);
}

bool take_number(const ParsedNumber& parsed, std::string_view text, const ArrayRules& rules,
                 double& value) {
    const std::string_view number = text.substr(0, parsed.length);
    if (number.empty() || !complaint(parsed.value, number, rules).empty()) return false;
    value = stored_number(parsed.value, number, rules);
    return true;
}

std::string rank_range(const ArrayRules& rules) {
    const std::string low = std::to_string(rules.lowest_rank);
    return rules.lowest_rank == rules.highest_rank
               ? low
               : low + " to " + std::to_string(rules.highest_rank);
}

Array<double> to_array(const std::vector<double>& values, const std::vector<std::size_t>& shape) {
    Array<double> array = Array<double>::from_shape(shape);
    std::ranges::copy(values, array.begin());
    return array;
}

}  // namespace attn::io
