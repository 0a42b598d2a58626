#include "io/read/csv.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/read/csv_doubt.hpp"
#include "io/read/csv_layout.hpp"
#include "io/read/csv_lines.hpp"
#include "io/read/csv_rows.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

std::string count_text(std::size_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

bool are_booleans(const CsvLine& line) {
    return std::all_of(line.fields.begin(), line.fields.end(),
                       [](const Field& field) { return boolean_of(field.text).has_value(); });
}

class MatrixBuilder {
public:
    /// Every row has the width of the first one, and its kind: booleans or numbers.
    MatrixBuilder(const Source& source, const ArrayRules& rules, const CsvStyle& style,
                  bool labelled, const CsvLine& first_row)
        : source_(source), rules_(rules), style_(style), labelled_(labelled),
          fields_(first_row.fields.size()), width_line_(first_row.line) {
        result_.matrix.boolean = rules.boolean && !labelled && are_booleans(first_row);
    }

    void add(const CsvLine& record) {
        const std::size_t first = labelled_ ? 1 : 0;
        if (record.fields.size() != fields_)
            throw Error(ErrorKind::input, line_place(source_, record.line),
                        count_text(record.fields.size() - first, "value") + "; expected " +
                            std::to_string(fields_ - first) + " as in line " +
                            std::to_string(width_line_));
        if (labelled_) result_.labels.push_back(record.fields[0].text);
        for (std::size_t i = first; i < fields_; ++i)
            result_.matrix.boolean ? add_boolean(record.fields[i]) : add_number(record.fields[i]);
        ++rows_;
    }

    LabelledMatrix finish() {
        result_.matrix.values = to_array(values_, {rows_, fields_ - (labelled_ ? 1 : 0)});
        return std::move(result_);
    }

private:
    void add_boolean(const Field& field) {
        const std::optional<bool> value = boolean_of(field.text);
        if (!value)
            throw Error(
                ErrorKind::input, source_.place(field.offset),
                "found '" + shortened(field.text) + "' among booleans; expected true or false");
        values_.push_back(*value ? 1 : 0);
    }

    void add_number(const Field& field) {
        const std::string text = plain_number(field.text);
        const ParsedNumber number = parse_loose_number(text);
        if (text.empty())
            throw Error(ErrorKind::input, source_.place(field.offset),
                        "an empty field; expected a number");
        if (number.length != text.size())
            throw Error(ErrorKind::input, source_.place(field.offset), not_a_number(field, style_));
        const std::string problem = complaint(number.value, text, rules_);
        if (!problem.empty()) throw Error(ErrorKind::input, source_.place(field.offset), problem);
        values_.push_back(stored_number(number.value, text, rules_));
    }

    const Source& source_;
    ArrayRules rules_;
    const CsvStyle& style_;
    bool labelled_;
    std::size_t fields_, width_line_;
    std::size_t rows_ = 0;
    std::vector<double> values_;
    LabelledMatrix result_;
};

/// The rows are those of the last axis of the shape that the comment gives.
void take_shape(Array<double>& values, const ShapeComment& comment, const ArrayRules& rules,
                const Source& source) {
    const std::vector<std::size_t>& shape = comment.shape;
    const auto fail = [&](const std::string& message) {
        throw Error(ErrorKind::input, line_place(source, comment.line),
                    "shape " + shape_text(shape) + message);
    };
    if (shape.size() < rules.lowest_rank || shape.size() > rules.highest_rank)
        fail(" has rank " + std::to_string(shape.size()) + "; expected rank " + rank_range(rules));
    const std::size_t rows = values.shape(0), columns = values.shape(1);
    const double wanted = std::accumulate(
        shape.begin(), shape.end() - 1, 1.0,
        [](double product, std::size_t length) { return product * static_cast<double>(length); });
    if (wanted != static_cast<double>(rows) || shape.back() != columns)
        fail(" means " + fixed_text(wanted, 0) + " x " + std::to_string(shape.back()) +
             " numbers; expected " + std::to_string(rows) + " x " + std::to_string(columns) +
             " as in the rows below it");
    values.reshape(shape);
}

/// A line that begins with '#' is a row only if it fits.
void check_hash_line(const CsvLine& line, const CsvLine& first_row, bool labelled,
                     const Source& source, const CsvStyle& style) {
    if (style.comments || !line.begins_with_hash()) return;
    const bool fits = fits_below_label(line, first_row);
    if (!labelled || !fits) refuse_hash_line(line, fits, source, style);
}

/// In a file of one column a line of blanks may be a row without its number.
void check_blank_line(const CsvLine& line, const Source& source) {
    if (line.after_blank && line.fields.size() == 1)
        throw Error(ErrorKind::input, line_place(source, line.line),
                    "a blank line before this row of one number, which may be a missing value; "
                    "expected numbers, or no such line");
}

LabelledMatrix read_lines(CsvLineReader reader, const CsvLayout& layout, const Source& source,
                          const ArrayRules& rules, const CsvStyle& style, bool labelled) {
    MatrixBuilder builder(source, rules, style, labelled, layout.row);
    builder.add(layout.row);
    for (CsvLine line; reader.next(line);) {
        check_hash_line(line, layout.row, labelled, source, style);
        check_blank_line(line, source);
        builder.add(line);
    }
    return builder.finish();
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
                                           const Source& source, const ArrayRules& rules,
                                           const CsvStyle& style, ThreadPool* workers,
                                           std::size_t piece_size) {
    if (style.decimal == DecimalMark::comma) return {};
    const std::vector<Field>& fields = layout.row.fields;
    const bool labelled =
        layout.labelled.value_or(fields.size() > 1 && cell_of(fields[0]) != Cell::number);
    const CsvRowStyle rows{reader.separator(), fields.size(), labelled,
                           reader.ends_with_separator()};
    auto read =
        read_csv_rows(source.text.substr(layout.row.offset), rows, rules, workers, piece_size);
    if (!read || !labelled || layout.labelled) return read;
    const auto is = [](Cell cell) {
        return
            [cell](const std::string& label) { return cell_of(std::string_view(label)) == cell; };
    };
    const bool are_labels =
        std::any_of(read->labels.begin(), read->labels.end(), is(Cell::word)) &&
        std::none_of(read->labels.begin(), read->labels.end(), is(Cell::number));
    if (!are_labels) read.reset();
    return read;
}

}  // namespace

LabelledMatrix read_csv(const Source& source, const ArrayRules& rules, const CsvStyle& style,
                        ThreadPool* workers, std::size_t piece_size) {
    CsvLineReader reader(source, style);
    std::optional<CsvLayout> booleans = layout_of_booleans(reader, rules);
    CsvLayout layout = booleans ? std::move(*booleans) : read_layout(reader, source, style);
    check_blank_line(layout.row, source);
    auto read = read_regular(reader, layout, source, rules, style, workers, piece_size);
    if (!read)
        read = read_lines(reader, layout, source, rules, style,
                          has_labels(layout, reader, source, style));
    if (layout.rows.value_or(read->labels.size()) != read->labels.size())
        throw Error(ErrorKind::input, source.name,
                    count_text(read->labels.size(), "row") + "; expected " +
                        std::to_string(*layout.rows) + " as in the sizes on the first line");
    if (reader.shape().line != 0) take_shape(read->matrix.values, reader.shape(), rules, source);
    read->header_line = layout.header.line;
    for (Field& field : layout.header.fields) read->header.push_back(std::move(field.text));
    return std::move(*read);
}

std::string left_out(const LabelledMatrix& read, const Source& source, const CsvStyle& style) {
    const bool header = read.header_line != 0 && style.header == Guess::automatic;
    const bool labels = !read.labels.empty() && style.labels == Guess::automatic;
    if (!header && !labels) return {};
    const std::string line = "line " + std::to_string(read.header_line) + " is read as a header";
    std::string text = source.name + ": " + (header ? line : "the first column is read as labels");
    if (header && labels) text += ", the first column as labels";
    if (!style.has_flags) return text;
    text += header ? "; --csv-header no" : "; --csv-labels no";
    if (header && labels) text += " and --csv-labels no";
    return text + (header && labels ? " read numbers" : " reads numbers");
}

}  // namespace attn::io
