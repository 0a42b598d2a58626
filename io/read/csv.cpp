#include "io/read/csv.hpp"

#include <algorithm>
#include <numeric>

#include "io/read/csv_parts.hpp"

namespace attn::io {
namespace {

bool are_booleans(const CsvLine& line) {
    return std::ranges::all_of(
        line.fields, [](const Field& field) { return boolean_of(field.text).has_value(); });
}

double value_of(const Field& field, bool is_boolean, const ArrayRules& rules,
                const Source& source) {
    if (is_boolean) {
        if (const std::optional<bool> value = boolean_of(field.text)) return *value ? 1 : 0;
        throw Error(ErrorKind::input, source.location(field.offset), "found '",
                    shortened(field.text), "' among booleans; expected true or false");
    }
    const std::string text = plain_number(field.text);
    const ParsedNumber number = parse_loose_number(text);
    if (text.empty() || number.length != text.size()) refuse_number(field, source);
    const std::string problem = complaint(number.value, text, rules);
    if (!problem.empty()) throw Error(ErrorKind::input, source.location(field.offset), problem);
    return stored_number(number.value, text, rules);
}

/// The rows are those of the last axis of the shape that the comment gives.
void take_shape(Array<double>& values, const ShapeComment& comment, const ArrayRules& rules,
                const Source& source) {
    const std::vector<std::size_t>& shape = comment.shape;
    const auto fail = [&](const auto&... message) {
        throw Error(ErrorKind::input, line_location(source.name, comment.line), "shape ",
                    shape_text(shape), message...);
    };
    if (shape.size() < rules.lowest_rank || shape.size() > rules.highest_rank)
        fail(" has rank ", shape.size(), "; expected rank ", rank_range(rules));
    const std::size_t rows = values.shape(0), columns = values.shape(1);
    const double wanted = std::accumulate(
        shape.begin(), shape.end() - 1, 1.0,
        [](double product, std::size_t length) { return product * static_cast<double>(length); });
    if (wanted != static_cast<double>(rows) || shape.back() != columns)
        fail(" means ", fixed_text(wanted, 0), " x ", shape.back(), " numbers; expected ", rows,
             " x ", columns, " as in the rows below it");
    values.reshape(shape);
}

/// In a file of one column a line of blanks may be a row without its number.
void check_blank_line(const CsvLine& line, const Source& source) {
    if (line.after_blank && line.fields.size() == 1)
        throw Error(ErrorKind::input, line_location(source.name, line.line),
                    "a blank line before this row of one number, which may be a missing value; "
                    "expected numbers, or no such line");
}

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
    std::string context;
    if (has_numbers)
        context = std::string(is_decimal ? ", with a decimal comma," : "") +
                  " in a column that holds '" + shortened(column.numbers.field.text) +
                  "' on line " + std::to_string(column.numbers.line);
    std::vector<CsvWay> ways{as_decimal_comma(), {{labels_yes}, "the column", "as labels"}};
    if (layout.header.fields.empty() && rows.style().header == Guess::automatic &&
        column.words.count == 1 && column.doubtful.count == 0 && odd.line == layout.row.line)
        ways.push_back(as_header());
    throw CsvDamage(rows.source().location(odd.field.offset), odd.field.offset,
                    found_text(odd.field) + context,
                    has_numbers ? "" : meanings_of(odd.field, "a label"),
                    "numbers, or all labels in quotes", std::move(ways));
}

/// Whether a line is a row if its first field is a label; otherwise it is an error in any case.
bool fits_below_label(const CsvLine& line, const CsvLine& first_row) {
    return line.fields.size() == first_row.fields.size() &&
           std::all_of(line.fields.begin() + 1, line.fields.end(),
                       [](const Field& field) { return cell_of(field) == Cell::number; });
}

/// Whether the first column holds labels, by all of its fields; `rows` continues after the first
/// row. Errors: kind input if the text is ambiguous.
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
            rows.source().location(column.quoted.field.offset), column.quoted.field.offset,
            found_text(column.quoted.field) + " in quotes", ", which may be a number or a label",
            "quotes around labels alone",
            {{{labels_yes}, "the column", "as labels"}, {{labels_no}, "the column", "as numbers"}});
    return !column.others_quoted;
}

/// Every row has the width of the first one, and its kind: booleans or numbers.
LabelledMatrix read_lines(CsvLineReader reader, const CsvLayout& layout, const ArrayRules& rules) {
    const bool labelled = has_labels(layout, reader);
    const std::size_t width = layout.row.fields.size(), skipped = layout.index_columns,
                      first = skipped + (labelled ? 1 : 0);
    LabelledMatrix read;
    read.index_columns = skipped;
    read.matrix.boolean = rules.boolean && !labelled && are_booleans(layout.row);
    std::vector<double> values;
    std::size_t rows = 0;
    CsvLine line = layout.row;
    do {
        const bool may_be_comment = rows != 0 && !reader.style().comments;
        if (may_be_comment && line.begins_with_hash()) {  // a row only if it fits
            const bool fits = fits_below_label(line, layout.row);
            if (!labelled || !fits) refuse_hash_line(line, fits, reader);
        }
        check_blank_line(line, reader.source());
        if (line.fields.size() != width)
            throw Error(ErrorKind::input, line_location(reader.source().name, line.line),
                        count_text(line.fields.size() - first, "value"), "; expected ",
                        width - first, " as in line ", layout.row.line);
        if (labelled) read.labels.push_back(line.fields[skipped].written());
        for (std::size_t i = first; i < width; ++i)
            values.push_back(value_of(line.fields[i], read.matrix.boolean, rules, reader.source()));
        ++rows;
    } while (reader.next(line));
    read.matrix.values = to_array(values, {rows, width - first});
    return read;
}

/// "0,05", "-0,5", "the 0,5e3": integers with a comma between them at the end of a line, and
/// whether they are rather one number: so they are after a label and a blank.
struct IntegerPair {
    bool is_pair = false, has_second_sign = false, is_decimal = false;

    explicit IntegerPair(std::string_view line) {
        line = line.substr(0, line.find_last_not_of(" \t") + 1);
        const std::size_t label = line.find_last_of(" \t|") + 1;  // npos + 1 is 0
        const bool is_labelled = cell_of(line.substr(0, label)) == Cell::word;
        if (is_labelled) line.remove_prefix(label);
        const auto without_sign = [](std::string_view number) {
            return number.substr(number.starts_with('-') || number.starts_with('+') ? 1 : 0);
        };
        const std::size_t comma = std::min(line.find(','), line.size());
        const std::string_view after = line.substr(std::min(comma + 1, line.size())),
                               first = without_sign(line.substr(0, comma)),
                               second = without_sign(after);
        if (!are_digits(first) || comma == line.size()) return;
        has_second_sign = second.size() != after.size();
        is_pair = are_digits(second);
        if (is_labelled) is_pair = is_decimal = has_decimal_comma(line);
        is_decimal = is_decimal || (first.size() != comma && first == "0") ||
                     (second.size() > 1 && second[0] == '0');
    }
};

/// Two columns of integers are rather one of numbers with a decimal comma if a second one begins
/// with 0 or a first one is -0; and so are integers after labels that end with a blank and an
/// integer.
void check_decimal_column(const CsvLayout& layout, const CsvLineReader& reader) {
    const Source& source = reader.source();
    if (reader.style().decimal || !reader.style().has_flags || reader.separator() != ',' ||
        reader.shape().line != 0 || !layout.header.fields.empty() || layout.row.fields.size() != 2)
        return;
    std::string_view found;
    for (std::string_view rest = source.text.substr(layout.row.offset); !rest.empty();) {
        const std::string_view line = take_line(rest);
        if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
        const IntegerPair pair(line);
        if (!pair.is_pair || pair.has_second_sign) return;
        if (pair.is_decimal && found.empty()) found = line;
    }
    if (found.empty()) return;
    const auto offset = static_cast<std::size_t>(found.data() - source.text.data());
    throw CsvDoubt(source.location(offset), offset, "found '" + shortened(found) + "'",
                   ", which may be one number or two", "numbers with a decimal point",
                   {{{decimal_comma}, "it", "as one"}, {{decimal_point}, "it", "as two"}});
}

/// A first line of true and false, as Python writes a mask, is a row if the rules accept booleans.
std::optional<CsvLayout> layout_of_booleans(CsvLineReader& reader, const ArrayRules& rules) {
    CsvLayout layout;
    CsvLineReader ahead = reader;
    if (!rules.boolean || !ahead.next(layout.row) || !are_booleans(layout.row)) return {};
    layout.labelled = false;
    reader.next(layout.row);
    return layout;
}

/// With the fast reader; empty if the text is not regular. The first column holds labels if there
/// is a word and no number in it.
std::optional<LabelledMatrix> read_regular(const CsvLineReader& reader, const CsvLayout& layout,
                                           const ArrayRules& rules, ThreadPool* workers,
                                           std::size_t piece_size) {
    if (reader.style().decimal == DecimalMark::comma || layout.index_columns != 0) return {};
    const std::vector<Field>& fields = layout.row.fields;
    const bool labelled =
        layout.labelled.value_or(fields.size() > 1 && cell_of(fields[0]) != Cell::number);
    const CsvRowStyle rows{reader.separator(), fields.size(), labelled,
                           reader.ends_with_separator()};
    auto read = read_csv_rows(reader.source().text.substr(layout.row.offset), rows, rules, workers,
                              piece_size);
    if (!read || !labelled || layout.labelled) return read;
    const auto is = [](Cell cell) {
        return
            [cell](const std::string& label) { return cell_of(std::string_view(label)) == cell; };
    };
    const bool are_labels = std::ranges::any_of(read->labels, is(Cell::word)) &&
                            std::ranges::none_of(read->labels, is(Cell::number));
    if (!are_labels) read.reset();
    return read;
}

/// What a header names as an index holds integers, unless there are words in it.
void check_index(const CsvLayout& layout, const CsvLineReader& rows) {
    for (std::size_t column = 0; column < layout.named_index; ++column) {
        CsvLineReader reader = rows;
        CsvLine line = layout.row;
        std::optional<Field> odd;
        bool has_words = false;
        do {
            const Field& field = line.fields[column];
            has_words = field.quoted || cell_of(field) == Cell::word;
            if (!odd && !are_digits(field.text)) odd = field;
        } while (!has_words && reader.next(line));
        if (odd && !has_words)
            throw CsvDoubt(rows.source().location(odd->offset), odd->offset,
                           found_text(*odd) + " in a column that the header names as an index", "",
                           "integers in it, or words",
                           {{{index_yes}, "the column", "as an index"},
                            {{index_no}, "the column", "as numbers"}});
    }
}

/// Whether the first column counts the rows, from 0 or 1; one row only from 0.
bool counts_rows(const CsvLayout& layout, const Array<double>& values) {
    const std::size_t rows = values.shape(0), columns = values.shape(1);
    const std::string& first = layout.row.fields[0].text;
    if (columns < 2 || (first != "0" && (rows < 2 || first != "1"))) return false;
    for (std::size_t row = 0; row < rows; ++row)
        if (values.data()[row * columns] != values.data()[0] + static_cast<double>(row))
            return false;
    return true;
}

bool has_decimals(const CsvLayout& layout, const Array<double>& values) {
    const auto is_decimal = [](double value) { return std::trunc(value) != value; };
    return std::ranges::any_of(values, is_decimal) ||
           std::ranges::any_of(layout.row.fields, [](const Field& field) {
               return field.text.find('.') != std::string::npos;
           });
}

struct ReadText {
    LabelledMatrix result;
    std::optional<std::size_t> rows;  // the number that the first line gives
    ShapeComment shape;
};

ReadText read_text(const Source& source, const ArrayRules& rules, const CsvStyle& style,
                   ThreadPool* workers, std::size_t piece_size) {
    CsvLineReader reader(source, style);
    std::optional<CsvLayout> booleans = layout_of_booleans(reader, rules);
    CsvLayout layout = booleans ? std::move(*booleans) : read_layout(reader);
    check_blank_line(layout.row, source);
    check_decimal_column(layout, reader);
    auto read = read_regular(reader, layout, rules, workers, piece_size);
    if (!read) read = read_lines(reader, layout, rules);
    if (layout.index_columns != 0 || !std::ranges::all_of(read->labels, are_digits))
        check_index(layout, reader);
    read->header_line = layout.header.line;
    const bool names_all = layout.header.fields.size() == layout.row.fields.size();
    for (std::size_t i = names_all ? layout.index_columns : 0; i < layout.header.fields.size(); ++i)
        read->header.push_back(layout.header.fields[i].written());
    const bool may_count = style.is_noted && style.has_flags && reader.shape().line == 0 &&
                           style.index == Guess::automatic && style.labels == Guess::automatic;
    if (!may_count || !read->labels.empty()) return {std::move(*read), layout.rows, reader.shape()};
    const Array<double>& values = read->matrix.values;
    const bool counts = counts_rows(layout, values),
               are_labels_next = counts && names_all && names_labels(layout.header.fields[1].text);
    if (counts && values.shape(0) > 1 && has_decimals(layout, values) && !are_labels_next) {
        CsvStyle as_index = style;
        as_index.index = Guess::yes;
        ReadText again = read_text(source, rules, as_index, workers, piece_size);
        again.result.counts = true;
        return again;
    }
    if (counts)
        read->doubt = "the first column counts the rows; --csv-index yes reads it as an index";
    else if (style.header == Guess::automatic && values.shape(1) == 1 &&
             layout.row.fields[0].text == "0")
        read->doubt = concat("line ", layout.row.line,
                             " may name the column; --csv-header yes reads it as a header");
    return {std::move(*read), layout.rows, reader.shape()};
}

}  // namespace

LabelledMatrix read_csv(const Source& source, const ArrayRules& rules, const CsvStyle& style,
                        ThreadPool* workers, std::size_t piece_size) {
    ReadText read;
    try {
        read = read_text(source, rules, style, workers, piece_size);
    } catch (const CsvDoubt& doubt) {
        doubt.resolve(source, style, [&](const Source& lines, const CsvStyle& other) {
            read_text(lines, rules, other, nullptr, piece_size);
        });
    }
    const std::size_t labels = read.result.labels.size();
    if (read.rows.value_or(labels) != labels)
        throw Error(ErrorKind::input, source.name, count_text(labels, "row"), "; expected ",
                    *read.rows, " as in the sizes on the first line");
    if (read.shape.line != 0) take_shape(read.result.matrix.values, read.shape, rules, source);
    return std::move(read.result);
}

std::string left_out(const LabelledMatrix& read, const Source& source, const CsvStyle& style) {
    const bool header = read.header_line != 0 && style.header == Guess::automatic;
    const bool labels = !read.labels.empty() && style.labels == Guess::automatic;
    if (!header && !labels) return read.doubt.empty() ? "" : source.name + ": " + read.doubt;
    const std::string line = "line " + std::to_string(read.header_line) + " is read as a header";
    const std::string role = read.counts ? "an index, as it counts the rows" : "labels",
                      column = read.index_columns == 0
                                   ? "the first column"
                                   : "column " + std::to_string(read.index_columns + 1);
    const std::string flag((read.counts ? index_no : labels_no).text);
    std::string text = source.name + ": " + (header ? line : column + " is read as " + role);
    if (header && labels) text += ", " + column + " as " + role;
    if (read.index_columns != 0) return text + ", and what is before it is left out";
    if (!style.has_flags) return text;
    text += header ? "; --csv-header no" : "; " + flag;
    if (header && labels) text += " and " + flag;
    text += header && labels ? " read numbers" : " reads numbers";
    return text + (read.doubt.empty() ? "" : "; " + read.doubt);
}

}  // namespace attn::io
