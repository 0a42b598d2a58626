// NDJSON: a text of several JSON values, one a line.
#pragma once

#include <string_view>

#include "core/base/thread_pool.hpp"
#include "io/file/source.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

/// The first line holds one whole list or object, and a later line begins with another.
bool looks_like_ndjson(std::string_view text);

/// One line, which starts with a list: what only a name can tell from JSON.
bool is_one_line_of_list(std::string_view text);

/// One array of lines that hold lists of one shape: `[1, 2]` and `[3, 4]` are the rows of a matrix,
/// two matrices a batch; `[1, 2]` alone is a matrix of one row. Blank lines are skipped.
/// `rules` are those of the whole array. Errors: as JsonArrayReader, and kind input for a line of
/// another shape and for text after a list.
NumberArray read_ndjson_array(const Source& source, const ArrayRules& rules,
                              ThreadPool* workers = nullptr,
                              std::size_t piece_size = default_piece);

}  // namespace attn::io
