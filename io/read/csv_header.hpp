// Whether the first line of CSV text is a header.
#pragma once

#include "io/read/csv.hpp"
#include "io/read/csv_lines.hpp"

namespace attn::io {

/// By the rules of csv.hpp for text, ignoring `style.header`; `rest` continues after the line.
/// Errors: kind input if the text is ambiguous.
bool looks_like_header(const CsvLine& line, const CsvLineReader& rest, const Source& source,
                       const CsvStyle& style);

}  // namespace attn::io
