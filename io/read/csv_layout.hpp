// Which lines of CSV text are comments, a header and rows, and whether the first column holds
// labels.
#pragma once

#include <optional>

#include "io/read/csv.hpp"
#include "io/read/csv_lines.hpp"

namespace attn::io {

/// The layout found in the first lines.
struct CsvLayout {
    CsvLine header;                        ///< without fields if there is none
    CsvLine row;                           ///< the first one
    std::optional<bool> labelled;          ///< empty if the whole first column must be examined
    std::optional<std::size_t> rows = {};  ///< the number that a first line of sizes gives
};

/// Reads up to the first row; `reader` continues after it. csv.hpp has the rules. Errors: kind
/// input if the text is ambiguous, or there is no row.
CsvLayout read_layout(CsvLineReader& reader, const Source& source, const CsvStyle& style);

/// Whether the first line is a header, by the rules of csv.hpp for text, ignoring `style.header`;
/// `rest` continues after the line. Errors: kind input if the text is ambiguous.
bool looks_like_header(const CsvLine& line, const CsvLineReader& rest, const Source& source,
                       const CsvStyle& style);

/// Whether a line is a row if its first field is a label; otherwise it is an error in any case.
bool fits_below_label(const CsvLine& line, const CsvLine& first_row);

/// Whether the first column holds labels, by all of its fields; `rows` continues after the first
/// row and is read to the end. Errors: kind input if the text is ambiguous.
bool has_labels(const CsvLayout& layout, CsvLineReader rows, const Source& source,
                const CsvStyle& style);

/// A line that begins with '#' after the first row, and is neither a comment nor a row of `layout`.
/// `may_be_labelled`: it would be a row if its first field were a label. Always throws.
[[noreturn]] void refuse_hash_line(const CsvLine& line, bool may_be_labelled, const Source& source,
                                   const CsvStyle& style);

}  // namespace attn::io
