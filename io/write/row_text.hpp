// Arrays as text, row by row: workers make the text of many rows at a time, written in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/named_array.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/output.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

/// How a format writes the rows of an array: runs of its last axis.
struct RowFormat {
    std::string_view separator;
    std::string nan, infinity, minus_infinity;
    std::optional<int> decimals;  ///< empty: shortest
    /// Append the text before and after row `row` of an array of this shape.
    std::function<void(TextBuffer&text, const std::vector<std::size_t>&shape, std::size_t row)>
        open, close;
    /// Write a number in place of the decimals and the words above; null: those are written. They
    /// return the end; max_number_length bytes from `at` on may be overwritten.
    std::function<char*(char* at, double number)> real = {};
    std::function<char*(char* at, std::int64_t number)> integer = {};
    /// ".0" after real numbers that readers of the format would take for integers and change.
    bool marks_reals = false;
    /// Every number is a row of its own, and all real ones without decimals have a point: readers
    /// guess the type of a column from its first lines.
    bool are_elements = false;
};

/// Numbers in one worker's piece of text, and in all pieces in memory.
inline constexpr std::size_t default_row_piece = std::size_t{1} << 15,
                             numbers_in_pieces = std::size_t{1} << 18;

/// The rows of an array, or of a stream as it computes them. The bytes do not depend on the
/// workers, which may be null, or on the pieces. Rows longer than a piece are divided too, so that
/// memory holds the text of at most numbers_in_pieces numbers for any shape.
void write_rows(Output& out, const NamedArray& array, const RowFormat& format, ThreadPool* workers,
                std::size_t piece_size = default_row_piece);

/// In quotes, as RFC 4180 has them.
std::string quoted_field(const std::string& text);

/// Errors: kind input for a label with U+0000.
void refuse_zeros(std::span<const std::string> labels);

/// The shape of the array or of the stream.
std::vector<std::size_t> shape_of(const NamedArray& array);

/// "heads 2, d_out 4": every axis with its length.
std::string axes_text(const NamedArray& array);

/// The index of the axis, or the rank if there is none.
std::size_t index_of_axis(const NamedArray& array, std::string_view axis);

/// The length of the axis, or 0 if there is none.
std::size_t length_of_axis(const NamedArray& array, std::string_view axis);

}  // namespace attn::io
