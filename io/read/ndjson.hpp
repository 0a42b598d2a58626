// NDJSON: text with one JSON value per line.
#pragma once

#include <string_view>

#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/source.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

/// Whether the first line holds one complete list or object, and a later line begins with another.
bool looks_like_ndjson(std::string_view text);

/// Whether it is one line that starts with a list, which only the file's name distinguishes from
/// JSON.
bool is_one_line_of_list(std::string_view text);

/// Passes on each line that is not blank, with its number.
void for_each_line(const Source& source, FunctionRef<void(Source line)> take);

/// One array of lines that hold lists of one shape: `[1, 2]` and `[3, 4]` are the rows of a matrix,
/// two matrices a batch; `[1, 2]` alone is a matrix of one row. Blank lines are skipped. `rules`
/// are those of the whole array. Errors: as read_json_array, and kind input for a line of a
/// different shape and for text after a list.
NumberArray read_ndjson_array(const Source& source, const ArrayRules& rules,
                              ThreadPool* workers = nullptr,
                              std::size_t piece_size = default_piece);

}  // namespace attn::io
