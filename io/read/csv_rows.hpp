// Reads regular CSV rows on all workers; anything unexpected is left to csv.hpp, which reports the
// errors.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/thread_pool.hpp"
#include "io/read/csv.hpp"

namespace attn::io {

/// The layout of the rows, known from the first one.
struct CsvRowStyle {
    char separator;      ///< ' ': any white space
    std::size_t fields;  ///< of every row, the label included
    bool labelled;
    bool ends_with_separator = false;  ///< every row, without a field after it
};

/// The matrix in `text`, which has no comments, blank lines or quotes; empty if anything in it is
/// unexpected. The numbers equal those of read_csv.
std::optional<LabelledMatrix> read_csv_rows(std::string_view text, const CsvRowStyle& style,
                                            const ArrayRules& rules, ThreadPool* workers = nullptr,
                                            std::size_t piece_size = default_piece);

}  // namespace attn::io
