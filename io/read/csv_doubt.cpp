#include "io/read/csv_doubt.hpp"

#include "core/base/error.hpp"

namespace attn::io {

bool is_quoted_number(const Field& field, char separator) {
    return field.quoted && field.text.find(separator) != std::string::npos &&
           cell_of(field) == Cell::damaged;
}

CellCounts::CellCounts(const CsvLine& line, std::size_t first, char separator) {
    for (std::size_t i = first; i < line.fields.size(); ++i) {
        const Field& field = line.fields[i];
        const Cell cell = cell_of(field);
        std::size_t& count = cell == Cell::word     ? words
                             : cell == Cell::number ? numbers
                             : cell == Cell::mark   ? marks
                                                    : others;
        ++count;
        all_quoted = all_quoted && field.quoted;
        has_quoted_number = has_quoted_number || is_quoted_number(field, separator);
    }
}

std::string not_a_number(const Field& field, const CsvStyle& style) {
    return "found '" + shortened(field.text) + "'; expected a number" +
           (!has_decimal_comma(field.text) ? ""
            : style.has_flags              ? " with a decimal point, or --csv-decimal ,"
                                           : " with a decimal point, not a comma");
}

std::string found_text(const Field& field, const std::string& otherwise) {
    const Cell cell = cell_of(field);
    const std::string kind = cell == Cell::number                          ? "a number"
                             : cell == Cell::missing || cell == Cell::mark ? "a missing value"
                             : has_decimal_comma(field.text) ? "a number with a decimal comma"
                                                             : "a damaged number";
    return "found '" + shortened(field.text) + "', which may be " + kind + " or " + otherwise;
}

void refuse_reading(const std::string& place, const std::string& found, const CsvStyle& style,
                    const std::string& flags, const std::string& without_flags) {
    throw Error(ErrorKind::input, place,
                found + "; " + (style.has_flags ? flags : "expected " + without_flags));
}

}  // namespace attn::io
