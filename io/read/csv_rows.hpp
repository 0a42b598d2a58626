// Reads regular CSV rows on all workers; whatever it does not expect it leaves to csv.hpp, which
// knows the errors.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/thread_pool.hpp"
#include "io/read/csv.hpp"

namespace attn::io {

/// What is known of the rows once the first one has been looked at.
struct CsvRowStyle {
    char separator;      ///< ' ': any white space
    std::size_t fields;  ///< of every row, the label included
    bool labelled;
};

/// The matrix that `text` holds from its first byte to its end, without comments, blank lines or
/// quotes; nothing where anything in it is unexpected. What is read is read as read_csv reads it.
std::optional<LabelledMatrix> read_csv_rows(std::string_view text, const CsvRowStyle& style,
                                            const ArrayRules& rules, ThreadPool* workers = nullptr,
                                            std::size_t piece_size = default_piece);

}  // namespace attn::io
