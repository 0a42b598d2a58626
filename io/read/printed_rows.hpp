// Arrays that libtorch and Julia print: rows of numbers without brackets, in blocks of columns, a
// matrix after the other.
#pragma once

#include "io/file/source.hpp"
#include "io/read/number_array.hpp"

namespace attn::io {

/// Whether the text ends with "[ CPUFloatType{3,2} ]" or begins with "3x2 Matrix{Float32}:", where
/// Julia has a multiplication sign.
bool are_printed_rows(std::string_view text);

/// The same array in JSON. Errors: kind input, for numbers that are left out.
std::string json_of_printed_rows(const Source& printed);

/// Appends the number at the start of `text` as JSON writes it, 1. +2 .5 inf, and returns its
/// length; 0 if there is none.
std::size_t append_json_number(std::string& json, std::string_view text);

/// "3, 2)", "3x2 ", "{3,2}": the integers between commas, blanks and x up to anything else.
std::vector<std::size_t> sizes_in(std::string_view text);

}  // namespace attn::io
