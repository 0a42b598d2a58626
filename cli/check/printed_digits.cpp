// How many digits a program printed its numbers with.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "cli/check/check.hpp"
#include "io/read/gguf_header.hpp"
#include "io/read/number_array.hpp"

namespace attn::cli {
namespace {

/// Digits of numbers in a text.
struct DigitCount {
    int decimals = 0, significant = 0;  // the most
    std::size_t numbers = 0;            // with a point or an exponent
    int after_point = 0;                // of the first
    bool have_exponents = false;        // all of them
    bool are_alike = true;              // in the digits after the point, and in having an exponent
    bool are_padded = false;            // one ends in a 0 or a point, which %g would leave out
    bool are_shortest = true;           // decimals of float32
    // Numbers of 7 digits or more, which few numbers have by chance, that are float32 rounded to
    // the digits of each, or have not more digits than float32 needs; and all others that are long.
    std::size_t floats = 0, doubles = 0;
    bool are_whole = true;  // no digit after the point but 0
    // Of numbers that have an exponent, or are not the sum of a few powers of 2, as 0.75 is.
    std::size_t inexact = 0;
    std::int64_t decimals_of_inexact = 0, significant_of_inexact = 0;

    /// `word` is a number as JSON or Python writes it. `of_floats`: others are left out.
    void add(std::string_view word, bool of_floats) {
        const std::size_t exponent_at = std::min(word.find_first_of("eE"), word.size());
        const std::string_view mantissa = word.substr(0, exponent_at);
        const std::size_t point = mantissa.find('.');
        const bool has_exponent = exponent_at != word.size();
        if (point == std::string_view::npos && !has_exponent) return;
        int after = 0, digits = 0, zeros_at_end = 0;
        bool is_leading = true;
        for (std::size_t i = 0; i < mantissa.size(); ++i) {
            if (mantissa[i] < '0' || mantissa[i] > '9') continue;
            if (point != std::string_view::npos && i > point) ++after;
            is_leading = is_leading && mantissa[i] == '0';
            if (!is_leading) ++digits;
            zeros_at_end = mantissa[i] == '0' ? zeros_at_end + 1 : 0;
        }
        const bool ends_as_repr = mantissa.ends_with(".0");  // as Python writes 1e9
        if (ends_as_repr) digits = std::max(0, digits - zeros_at_end);
        int exponent = 0;
        std::string_view tail = word.substr(std::min(exponent_at + 1, word.size()));
        if (tail.starts_with('+')) tail.remove_prefix(1);
        std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
        const double value = io::parse_loose_number(word).value;
        const double of_float = row_of(NumberType::float32).round(value);
        const bool is_of_float =
            digits <= most_of_float ||
            std::abs(value - of_float) <= 0.51 * std::pow(10.0, exponent - after);
        doubles += is_of_float ? 0U : 1U;
        floats += is_of_float && digits >= 7 ? 1U : 0U;
        if (of_floats && !is_of_float) return;
        const int places = std::clamp(after - exponent, 0, 400);
        if (numbers == 0) {
            after_point = after;
            have_exponents = has_exponent;
        }
        are_alike = are_alike && after == after_point && has_exponent == have_exponents;
        have_exponents = have_exponents && has_exponent;
        are_padded = are_padded || (!has_exponent && !ends_as_repr &&
                                    (mantissa.back() == '0' || mantissa.back() == '.'));
        decimals = std::max(decimals, places);
        significant = std::max(significant, digits);
        ++numbers;
        are_shortest = are_shortest && is_shortest_of_float(value);
        are_whole = are_whole && value == std::trunc(value);
        const double halves = std::ldexp(value, places);
        if (halves == std::trunc(halves) && !(has_exponent && digits > 1)) return;
        ++inexact;
        decimals_of_inexact += places;
        significant_of_inexact += digits;
    }

    static constexpr std::int64_t certain = 4;
    static constexpr int most_of_float = 9;  // float64 needs up to 17

    /// One long number does not make an array float64: what most numbers say is its type.
    bool are_floats() const { return 4 * doubles <= floats; }

    /// How many digits more are missing if the numbers were rounded to `significant` digits than if
    /// they were rounded to `decimals`. A digit that is left out is 0, which is one chance in ten.
    std::int64_t evidence_of_decimals() const {
        if (have_exponents) return -certain;
        if (are_padded) return certain;
        return static_cast<std::int64_t>(inexact) * (significant - decimals) + decimals_of_inexact -
               significant_of_inexact;
    }

private:
    static bool is_shortest_of_float(double value) {
        // 3.4028235e+38, the shortest decimal of the largest number, is above it.
        if (!(std::abs(value) <= 0x1.fffffefp127)) return false;
        return io::decimal_of_float(static_cast<float>(value)) == value;
    }
};

DigitCount digits_in(std::string_view text, bool of_floats = false) {
    constexpr std::string_view of_numbers = "0123456789+-.eE";
    DigitCount count;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = text.find_first_of("0123456789", at);
        if (begin == std::string_view::npos) break;
        const std::size_t end = std::min(text.find_first_not_of(of_numbers, begin), text.size());
        count.add(text.substr(begin, end - begin), of_floats);
        at = end;
    }
    return count;
}

}  // namespace

TextNumbers text_numbers(std::string_view text) {
    DigitCount count = digits_in(text);
    const bool are_floats = count.are_floats();
    if (are_floats && count.doubles != 0) count = digits_in(text, true);
    constexpr int few = 7, most_of_double = 15;
    TextNumbers numbers;
    numbers.are_padded = count.are_padded;
    numbers.type = are_floats ? NumberType::float32 : NumberType::float64;
    const int least = count.are_whole ? 2 : 1;  // 1.0 may be exact
    const bool are_printed_alike =
        count.are_alike && count.numbers > 1 && count.after_point >= least;
    // Few computed numbers have few digits, unless they are sums of a few powers of 2.
    const bool are_rounded = are_printed_alike || count.decimals >= 4 || count.inexact != 0;
    const std::int64_t evidence = count.evidence_of_decimals();
    // Of rounded numbers one in ten lacks the last decimal, of shortest ones far more may.
    const std::int64_t all_decimals = static_cast<std::int64_t>(count.inexact) * count.decimals,
                       lacking = all_decimals - count.decimals_of_inexact;
    const bool have_decimals =
        evidence >= DigitCount::certain && 2 * lacking <= static_cast<std::int64_t>(count.inexact);
    const bool are_few = count.significant <= few || !count.are_shortest || have_decimals;
    // As %.9g prints it, float32 is known exactly.
    const bool are_exact =
        are_floats && evidence <= 0 && count.significant == DigitCount::most_of_float;
    if (are_rounded && are_few && !are_exact && count.significant <= most_of_double)
        numbers.printed =
            PrintedDigits{count.decimals, evidence > 0 ? PrintedDigits::all : count.significant};
    return numbers;
}

}  // namespace attn::cli
