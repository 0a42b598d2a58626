// Reads one JSON array of numbers, of any depth, directly into memory, with exact errors.
#pragma once

#include "io/read/json_cursor.hpp"
#include "io/read/number_array.hpp"

namespace attn::io {

/// The array at `begin`. Besides JSON's numbers it accepts Python's bare NaN, Infinity and
/// -Infinity, and the same words as strings, as attn writes them. Errors: kind input, with
/// file:line:column, for ragged rows, empty rows, a wrong rank, anything that is not a number, and
/// numbers that violate the rules.
NumberArray read_json_array(const Source& source, std::size_t begin, const ArrayRules& rules);

/// One array of lines that hold lists of one shape (NDJSON): the lines are its first axis. Errors:
/// the same, and for text after a list.
NumberArray read_json_lines(const Source& source, const ArrayRules& rules);

}  // namespace attn::io
