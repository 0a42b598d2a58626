// Cuts a large text of numbers into runs of whole rows, which workers read straight into place.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::io {

/// Bytes of text that a worker reads at a time: many pieces a thread, few enough to be cheap.
inline constexpr std::size_t default_piece = std::size_t{1} << 18;

struct RowPiece {
    const char* begin;
    const char* end;
    std::size_t before = 0;  ///< marks in the text before it
};

/// The first place after `at` where a row begins, `end` where none does, null where the text is not
/// regular.
using NextRow = FunctionRef<const char*(const char* at, const char* end)>;

/// Pieces of at least `size` bytes, with the marks counted before each; the last entry is empty,
/// stands at the end and has the count of all. Nothing where the text is not regular. `marks` are
/// one or two characters that stand once after each element or row.
std::vector<RowPiece> cut_rows(std::string_view text, std::string_view marks, NextRow next_row,
                               std::size_t size, ThreadPool* workers);

/// Calls read(piece) for all pieces on all workers; false where one was false, and the rest may
/// then be left out.
bool read_pieces(const std::vector<RowPiece>& pieces, ThreadPool* workers,
                 FunctionRef<bool(const RowPiece&)> read);

/// How often the characters of `counted` stand in [begin, end).
std::size_t count_marks(const char* begin, const char* end, std::string_view counted);

}  // namespace attn::io
