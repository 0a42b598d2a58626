// A rectangular array of numbers as read from text, and what its numbers may be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/tensor.hpp"

namespace attn::io {

struct NumberArray {
    Array<double> values;
    bool boolean = false;   ///< written as true and false, kept as 1 and 0
    bool integers = false;  ///< of a type of whole numbers; text has no types

    std::vector<std::size_t> shape() const {
        return {values.shape().begin(), values.shape().end()};
    }
};

/// Which numbers and shapes the reader takes; anything else is an error at its place.
struct ArrayRules {
    Dtype dtype = Dtype::float32;  ///< numbers that overflow this type are refused
    bool nonfinite = false;        ///< NaN and infinities are taken
    bool boolean = false;          ///< true and false are taken
    bool null_is_nan = false;      ///< null is taken, as --nonfinite null writes it
    std::size_t lowest_rank = 2;
    std::size_t highest_rank = 3;
    bool rounding_errors = false;  ///< read what float64 loses of each integer in its place
    double memory_before = 0;      ///< bytes of what was read for the same question already
};

struct ParsedNumber {
    double value = 0;
    std::size_t length = 0;  ///< characters read; 0 where no number stands there
};

/// The decimal number at the front of `text`, correctly rounded to double as Python's float() does;
/// beyond double's range it is an infinity or zero. JSON's grammar: no leading '+', '.' or zeros.
ParsedNumber parse_json_number(std::string_view text);

/// The same, and Python's bare NaN, Infinity and -Infinity, and these words as strings.
ParsedNumber parse_json_number_or_word(std::string_view text);

/// A JSON number with a leading '+', leading zeros and '.5' allowed, and with nan, inf and infinity
/// in any case: what Python's float() takes.
ParsedNumber parse_loose_number(std::string_view text);

/// Empty where `value`, written as `text`, may stand in the array; else what is wrong with it.
std::string complaint(double value, std::string_view text, const ArrayRules& rules);

/// `value`, the float64 nearest to what `text` spells, or what rounds to the float32 nearest to the
/// text where that is another: the float64 nearest to 7.038531e-26 is half-way between two float32
/// numbers and would go to the wrong one.
double rounded_once(double value, std::string_view text, Dtype dtype);

/// What the rules store of a number: rounded_once, or the rounding error of an integer of 64 bits.
double stored_number(double value, std::string_view text, const ArrayRules& rules);

/// Stores the number that `text` starts with, `parsed`; false where none stands there or the rules
/// refuse it.
bool take_number(const ParsedNumber& parsed, std::string_view text, const ArrayRules& rules,
                 double& value);

/// The ranks that the rules take: "2 to 3".
std::string rank_range(const ArrayRules& rules);

/// Numbers that were read one by one, as an array.
Array<double> to_array(const std::vector<double>& values, const std::vector<std::size_t>& shape);

}  // namespace attn::io
