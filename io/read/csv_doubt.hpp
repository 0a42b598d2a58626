// Fields of a line of CSV by their kind, and errors for ambiguous text.
#pragma once

#include <string>

#include "io/read/csv.hpp"
#include "io/read/csv_cells.hpp"
#include "io/read/csv_lines.hpp"

namespace attn::io {

inline Cell cell_of(const Field& field) {
    return cell_of(std::string_view(field.text));
}

/// A damaged number that is quoted because of the separator in it: "1,000". The quotes do not make
/// it a name or a label.
bool is_quoted_number(const Field& field, char separator);

/// The number of fields of each kind in a line, from `first` on.
struct CellCounts {
    std::size_t words = 0, numbers = 0, marks = 0, others = 0;
    bool all_quoted = true;
    bool has_quoted_number = false;  ///< as above

    CellCounts(const CsvLine& line, std::size_t first, char separator);

    bool are_words() const { return numbers + marks + others == 0; }
    bool are_numbers() const { return words + marks + others == 0; }
};

/// "found 'abc'; expected a number".
std::string not_a_number(const Field& field, const CsvStyle& style);

/// "found 'NA', which may be a missing value or a label".
std::string found_text(const Field& field, const std::string& otherwise);

/// Always throws. Errors: kind input: what was found, and the flags of both readings; for a file
/// without flags, the expected contents.
[[noreturn]] void refuse_reading(const std::string& place, const std::string& found,
                                 const CsvStyle& style, const std::string& flags,
                                 const std::string& without_flags);

}  // namespace attn::io
