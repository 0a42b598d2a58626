// Which lines of CSV text are comments, a header and rows, and whether the first column holds
// labels.
#pragma once

#include <optional>

#include "io/read/csv.hpp"
#include "io/read/csv_lines.hpp"

namespace attn::io {

/// What the first lines say.
struct CsvLayout {
    CsvLine header;                ///< without fields where there is none
    CsvLine row;                   ///< the first one
    std::optional<bool> labelled;  ///< empty where the whole first column has to be looked at
};

/// Reads up to the first row; `reader` goes on after it. csv.hpp has the rules. Errors: kind input,
/// where they leave it open, or there is no row.
CsvLayout read_layout(CsvLineReader& reader, const Source& source, const CsvStyle& style);

/// Whether the first column holds labels, by all of its fields; `rows` goes on after the first row
/// and is read to the end. Errors: kind input, where they leave it open.
bool has_labels(const CsvLayout& layout, CsvLineReader rows, const Source& source,
                const CsvStyle& style);

/// A line that begins with '#' after the first row, and is neither a comment nor a row of
/// `layout`. `may_be_labelled`: it would be a row if its first field were a label. Errors: always.
[[noreturn]] void refuse_hash_line(const CsvLine& line, bool may_be_labelled, const Source& source,
                                   const CsvStyle& style);

}  // namespace attn::io
