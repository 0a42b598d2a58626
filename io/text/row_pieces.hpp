// Divides a large text of numbers into runs of whole rows, which workers read directly into the
// result.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::io {

/// Bytes of text that a worker reads at a time: many pieces per thread, but few enough to be cheap.
inline constexpr std::size_t default_piece = std::size_t{1} << 18;

struct RowPiece {
    const char* begin;
    const char* end;
    std::size_t before = 0;  ///< marks in the text before it
};

/// The start of the first row after `at`, `end` if there is none, null if the text is not regular.
using NextRow = FunctionRef<const char*(const char* at, const char* end)>;

/// Pieces of at least `size` bytes, each with the number of marks before it; the last entry is
/// empty, at the end, with the total number. Empty if the text is not regular. `marks` are one or
/// two characters that occur once after each element or row.
std::vector<RowPiece> cut_rows(std::string_view text, std::string_view marks, NextRow next_row,
                               std::size_t size, ThreadPool* workers);

/// Calls read(piece) for all pieces on all workers; false if one was false, and the rest may then
/// be skipped.
bool read_pieces(const std::vector<RowPiece>& pieces, ThreadPool* workers,
                 FunctionRef<bool(const RowPiece&)> read);

/// The number of characters of `counted` in [begin, end).
std::size_t count_marks(const char* begin, const char* end, std::string_view counted);

}  // namespace attn::io
