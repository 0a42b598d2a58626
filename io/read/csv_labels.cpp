// Labels in the first column of CSV text.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "io/read/csv_parts.hpp"

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
        Seen& seen = cell == Cell::word                 ? words
                     : is_quoted_word(field, separator) ? quoted
                     : cell == Cell::number             ? numbers
                                                        : doubtful;
        seen.add(record);
        for (std::size_t i = 1; i < record.fields.size(); ++i)
            (record.fields[i].quoted ? others_quoted : others_plain) = true;
    }
};

bool is_number(const Field& field) {
    return (!field.quoted || field.decimal_comma) && cell_of(field) == Cell::number;
}

/// A first line of words is also a header if it is the only one and numbers follow.
[[noreturn]] void refuse_column(const FirstColumn& column, const CsvLayout& layout,
                                const CsvLineReader& rows) {
    const bool is_word = column.doubtful.count == 0 ||
                         (column.words.count != 0 && column.words.line < column.doubtful.line);
    const FirstColumn::Seen& odd = is_word ? column.words : column.doubtful;
    const bool has_numbers = column.numbers.count != 0;
    const bool is_decimal = has_decimal_comma(odd.field.text) && !may_be_grouped(odd.field.text);
    std::string place;
    if (has_numbers)
        place = std::string(is_decimal ? ", with a decimal comma," : "") +
                " in a column that holds '" + shortened(column.numbers.field.text) + "' on line " +
                std::to_string(column.numbers.line);
    std::vector<CsvWay> ways{as_decimal_comma(), {{labels_yes}, "the column", "as labels"}};
    if (layout.header.fields.empty() && rows.style().header == Guess::automatic &&
        column.words.count == 1 && column.doubtful.count == 0 && odd.line == layout.row.line)
        ways.push_back(as_header());
    throw CsvDamage(rows.source().place(odd.field.offset), odd.field.offset,
                    found_text(odd.field) + place,
                    has_numbers ? "" : meanings_of(odd.field, "a label"),
                    "numbers, or all labels in quotes", std::move(ways));
}

}  // namespace

bool fits_below_label(const CsvLine& line, const CsvLine& first_row) {
    return line.fields.size() == first_row.fields.size() &&
           std::all_of(line.fields.begin() + 1, line.fields.end(),
                       [](const Field& field) { return cell_of(field) == Cell::number; });
}

bool has_labels(const CsvLayout& layout, CsvLineReader rows) {
    if (layout.labelled) return *layout.labelled;
    FirstColumn column;
    if (is_number(layout.row.fields[0]) || fits_below_label(layout.row, layout.row))
        column.add(layout.row, rows.separator());
    for (CsvLine record; rows.next(record);) {
        // Whether a line that begins with '#' is a row depends on the others.
        const bool may_be_comment = !rows.style().comments && record.begins_with_hash();
        if (!may_be_comment &&
            (is_number(record.fields[0]) || fits_below_label(record, layout.row)))
            column.add(record, rows.separator());
    }
    if (column.numbers.count != 0) {
        if (column.words.count + column.doubtful.count == 0) return false;
        refuse_column(column, layout, rows);
    }
    if (column.words.count != 0) return true;
    if (column.doubtful.count != 0) refuse_column(column, layout, rows);
    if (column.quoted.count == 0)
        return cell_of(layout.row.fields[0]) == Cell::word;  // no row fits
    if (column.others_quoted && column.others_plain)
        throw CsvDoubt(
            rows.source().place(column.quoted.field.offset), column.quoted.field.offset,
            found_text(column.quoted.field) + " in quotes", ", which may be a number or a label",
            "quotes around labels alone",
            {{{labels_yes}, "the column", "as labels"}, {{labels_no}, "the column", "as numbers"}});
    return !column.others_quoted;
}

}  // namespace attn::io
