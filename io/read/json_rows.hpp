// Reads regular JSON arrays of numbers on all workers; anything unexpected is left to
// json_array.hpp, which reports the errors.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/thread_pool.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

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
