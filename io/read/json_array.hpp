// Reads one JSON array of numbers, of any depth, directly into memory: a regular one on all
// workers, any other with exact errors.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/thread_pool.hpp"
#include "io/read/json_document.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

/// The array at `begin`. Besides JSON's numbers it accepts Python's bare NaN, Infinity and
/// -Infinity, and the same words as strings, as attn writes them. Errors: kind input, with
/// file:line:column, for ragged rows, empty rows, a wrong rank, anything that is not a number, and
/// numbers that violate the rules.
NumberArray read_json_array(const Source& source, std::size_t begin, const ArrayRules& rules);

/// One array of lines that hold lists of one shape (NDJSON): the lines are its first axis. Errors:
/// the same, and for text after a list.
NumberArray read_json_lines(const Source& source, const ArrayRules& rules);

/// Whether the outermost axis is a list, or the lines of a text (NDJSON).
enum class Outermost { list, lines };

/// The array in `text`, from its first bracket to its last; empty if anything in it is unexpected.
/// The numbers equal those of read_json_array. `bytes_after` the text are readable: then its last
/// numbers are read as fast as the others.
std::optional<NumberArray> read_json_rows(std::string_view text, const ArrayRules& rules,
                                          Outermost outermost = Outermost::list,
                                          ThreadPool* workers = nullptr,
                                          std::size_t piece_size = default_piece,
                                          std::size_t bytes_after = 0);

}  // namespace attn::io
