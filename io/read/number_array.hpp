// A rectangular array of numbers from text, and the rules for its numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/number_type.hpp"
#include "core/base/tensor.hpp"

namespace attn::io {

struct NumberArray {
    Array<double> values;
    bool boolean = false;   ///< written as true and false, stored as 1 and 0
    bool integers = false;  ///< of an integer type; text has no types

    const std::vector<std::size_t>& shape() const { return values.shape(); }
};

/// The numbers and shapes that the reader accepts; anything else is an error at its location.
struct ArrayRules {
    NumberType dtype = NumberType::float32;  ///< numbers that overflow this type are refused
    bool nonfinite = false;                  ///< NaN and infinities are accepted
    bool boolean = false;                    ///< true and false are accepted
    bool null_is_nan = false;                ///< null is accepted, as --nonfinite null writes it
    std::size_t lowest_rank = 2;
    std::size_t highest_rank = 3;
    bool rounding_errors = false;  ///< read the float64 rounding errors of integers instead
    double memory_before = 0;      ///< bytes already read for the same question

    /// Whether the dtype has a number below 1e38.
    bool fits(double number) const {
        return dtype != NumberType::float16 || !overflows(number, dtype);
    }

    /// Every number, in an array of at most this rank.
    static constexpr ArrayRules anything(std::size_t highest_rank) {
        return {NumberType::float64, true, true, true, 0, highest_rank};
    }
};

struct ParsedNumber {
    double value = 0;
    std::size_t length = 0;  ///< characters read; 0 if there is no number
};

/// The decimal number at the start of `text`, correctly rounded to double as by Python's float();
/// beyond double's range it is an infinity or zero. JSON's grammar: no leading '+', '.' or zeros.
ParsedNumber parse_json_number(std::string_view text);

/// The same, and Python's bare NaN, Infinity and -Infinity, and these words as strings.
ParsedNumber parse_json_number_or_word(std::string_view text);

/// A JSON number with a leading '+', leading zeros and '.5' allowed, and with nan, inf and infinity
/// in any case: the syntax of Python's float().
ParsedNumber parse_loose_number(std::string_view text);

/// Empty if `value`, written as `text`, is allowed in the array; otherwise the error.
std::string complaint(double value, std::string_view text, const ArrayRules& rules);

/// `value`, the float64 nearest to the number in `text`, adjusted if necessary so that it rounds to
/// the nearest float32. For example, the float64 nearest to 7.038531e-26 is half-way between two
/// float32 numbers and would round to the wrong one.
double rounded_once(double value, std::string_view text, NumberType dtype);

/// The stored form of a number: rounded_once, or the rounding error of a 64-bit integer.
double stored_number(double value, std::string_view text, const ArrayRules& rules);

/// Stores the number at the start of `text`, `parsed`; false if there is none or the rules refuse
/// it.
bool take_number(const ParsedNumber& parsed, std::string_view text, const ArrayRules& rules,
                 double& value);

/// The ranks that the rules allow: "2 to 3".
std::string rank_range(const ArrayRules& rules);

/// Converts numbers that were read one by one to an array.
Array<double> to_array(const std::vector<double>& values, const std::vector<std::size_t>& shape);

}  // namespace attn::io
