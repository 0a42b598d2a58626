// Reads regular JSON arrays of numbers on all workers; whatever it does not expect it leaves to
// json_array.hpp, which knows the errors.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/thread_pool.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

/// Whether the outermost axis is a list, or the lines of a text (NDJSON).
enum class Outermost { list, lines };

/// The array that `text` is, from its first bracket to its last; nothing where anything in it is
/// unexpected. What is read is read as JsonArrayReader reads it. `bytes_after` the text may be
/// looked at: then its last numbers are read as quickly as the others.
std::optional<NumberArray> read_json_rows(std::string_view text, const ArrayRules& rules,
                                          Outermost outermost = Outermost::list,
                                          ThreadPool* workers = nullptr,
                                          std::size_t piece_size = default_piece,
                                          std::size_t bytes_after = 0);

}  // namespace attn::io
