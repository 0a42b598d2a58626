// Numbers and arrays in the text of a program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.hpp"

namespace attn::cli {

/// How a language writes an array.
struct LiteralStyle {
    std::string_view open, close;  ///< of a row: "[", "]"
    std::string_view infinity;     ///< "inf"
};

/// The shortest decimal that reads back as the same number of its type.
std::string number_literal(double value, Dtype dtype = Dtype::float64,
                           std::string_view infinity = "inf");

/// A tolerance with three digits, not below the value but for the rounding to the type.
double rounded_tolerance(double value, Dtype dtype);

/// Rows in rows, each on a line of its own, wrapped before column 100. The first line begins at
/// column `indent`, below which the others are aligned.
std::string array_literal(const std::vector<std::size_t>& shape, const std::vector<double>& values,
                          Dtype dtype, std::size_t indent, const LiteralStyle& style);

/// "2, 6, 3".
template <class Numbers, class Text>
std::string listed_numbers(const Numbers& numbers, const Text& text_of) {
    std::string text;
    for (const auto number : numbers) text += (text.empty() ? "" : ", ") + text_of(number);
    return text;
}
template <class Integers>
std::string listed_integers(const Integers& integers) {
    return listed_numbers(integers, [](auto integer) { return std::to_string(integer); });
}

}  // namespace attn::cli
