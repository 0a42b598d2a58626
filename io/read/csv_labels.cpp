// Labels in the first column of CSV text.
#include <algorithm>

#include "io/read/csv_doubt.hpp"
#include "io/read/csv_layout.hpp"

namespace attn::io {
namespace {

/// The first column, field by field.
struct FirstColumn {
    struct Seen {
        std::size_t count = 0, line = 0;  // the line of the first
        Field field;

        void add(const CsvLine& record) {
            if (count++ != 0) return;
            field = record.fields[0];
            line = record.line;
        }
    };
    Seen words, numbers, quoted, doubtful;  // of numbers and ambiguous fields: unquoted ones
    bool others_quoted = false, others_plain = false;

    void add(const CsvLine& record, char separator) {
        const Field& field = record.fields[0];
        const Cell cell = cell_of(field);
        const bool is_quoted = field.quoted && !is_quoted_number(field, separator);
        Seen& seen = cell == Cell::word     ? words
                     : is_quoted            ? quoted
                     : cell == Cell::number ? numbers
                                            : doubtful;
        seen.add(record);
        for (std::size_t i = 1; i < record.fields.size(); ++i)
            (record.fields[i].quoted ? others_quoted : others_plain) = true;
    }
};

bool is_number(const Field& field) {
    return !field.quoted && cell_of(field) == Cell::number;
}

/// A first line of words is also a header if it is the only one and numbers follow.
[[noreturn]] void refuse_column(const FirstColumn& column, const CsvLayout& layout,
                                const Source& source, const CsvStyle& style) {
    const bool is_word = column.doubtful.count == 0 ||
                         (column.words.count != 0 && column.words.line < column.doubtful.line);
    const FirstColumn::Seen& odd = is_word ? column.words : column.doubtful;
    std::string found = found_text(odd.field, "a label");
    if (column.numbers.count != 0)
        found = "found '" + shortened(odd.field.text) +
                (has_decimal_comma(odd.field.text) ? "', with a decimal comma," : "'") +
                " in a column that holds '" + shortened(column.numbers.field.text) + "' on line " +
                std::to_string(column.numbers.line);
    const bool may_be_header = layout.header.fields.empty() && style.header == Guess::automatic &&
                               column.words.count == 1 && column.doubtful.count == 0 &&
                               odd.line == layout.row.line;
    refuse_reading(source.place(odd.field.offset), found, style,
                   has_decimal_comma(odd.field.text)
                       ? "--csv-decimal , reads it as a number, --csv-labels yes the column as "
                         "labels"
                   : may_be_header
                       ? "--csv-labels yes reads the column as labels, --csv-header yes the line "
                         "as a header"
                       : "--csv-labels yes reads the column as labels, --csv-labels no as "
                         "numbers",
                   "numbers, or all labels in quotes");
}

}  // namespace

bool fits_below_label(const CsvLine& line, const CsvLine& first_row) {
    return line.fields.size() == first_row.fields.size() &&
           std::all_of(line.fields.begin() + 1, line.fields.end(),
                       [](const Field& field) { return cell_of(field) == Cell::number; });
}

bool has_labels(const CsvLayout& layout, CsvLineReader rows, const Source& source,
                const CsvStyle& style) {
    if (layout.labelled) return *layout.labelled;
    FirstColumn column;
    if (is_number(layout.row.fields[0]) || fits_below_label(layout.row, layout.row))
        column.add(layout.row, rows.separator());
    for (CsvLine record; rows.next(record);) {
        // Whether a line that begins with '#' is a row depends on the others.
        const bool may_be_comment = !style.comments && record.begins_with_hash();
        if (!may_be_comment &&
            (is_number(record.fields[0]) || fits_below_label(record, layout.row)))
            column.add(record, rows.separator());
    }
    if (column.numbers.count != 0) {
        if (column.words.count + column.doubtful.count == 0) return false;
        refuse_column(column, layout, source, style);
    }
    if (column.words.count != 0) return true;
    if (column.doubtful.count != 0) refuse_column(column, layout, source, style);
    if (column.quoted.count == 0)
        return cell_of(layout.row.fields[0]) == Cell::word;  // no row fits
    if (column.others_quoted && column.others_plain)
        refuse_reading(source.place(column.quoted.field.offset),
                       "found '" + shortened(column.quoted.field.text) +
                           "' in quotes, which may be a number or a label",
                       style,
                       "--csv-labels yes reads the column as labels, --csv-labels no as numbers",
                       "quotes around labels alone");
    return !column.others_quoted;
}

}  // namespace attn::io
