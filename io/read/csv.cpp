// A matrix from CSV text; see csv.hpp.
#include "io/read/csv.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/read/csv_lines.hpp"
#include "io/read/csv_rows.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

bool is_number(const Field& field) {
    return !field.text.empty() && parse_loose_number(field.text).length == field.text.size();
}

/// "1.5abc", "0x10": more likely a slip than a word.
bool starts_like_number(const Field& field) {
    return !field.quoted && parse_loose_number(field.text).length != 0;
}

/// "0,43".
bool has_decimal_comma(const std::string& text) {
    std::string pointed = text;
    const std::size_t comma = pointed.find(',');
    if (comma == std::string::npos) return false;
    pointed[comma] = '.';
    return parse_loose_number(pointed).length == pointed.size();
}

/// Fields [first, end) are 0, 1, 2, ...: the names that pandas gives to columns without names.
bool counts_from_zero(const CsvLine& record, std::size_t first) {
    for (std::size_t i = first; i < record.fields.size(); ++i)
        if (record.fields[i].text != std::to_string(i - first)) return false;
    return record.fields.size() > first;
}

bool is_header(const CsvLine& record, const Source& source, Guess guess) {
    if (guess != Guess::automatic) return guess == Guess::yes;
    const auto& fields = record.fields;
    // A label in quotes before bare numbers, as the writer has them, is no name of a column.
    const bool is_labelled = fields.size() > 1 && fields[0].quoted && !fields[1].quoted;
    if (fields.size() > 1 && !is_labelled && counts_from_zero(record, 0))
        throw Error(ErrorKind::input, source.name + ":" + std::to_string(record.line),
                    "0, 1, ... may be a header or a row; expected --csv-header yes or no");
    if (!is_number(fields[0]) && counts_from_zero(record, 1)) return true;
    const auto is_word = [](const Field& f) {
        return !is_number(f) && (f.quoted || !has_decimal_comma(f.text));
    };
    return std::all_of(fields.begin(), fields.end(), is_word) &&
           (fields.size() > 1 || !starts_like_number(fields[0]));
}

bool names_labels(const Field& heading) {
    std::string name;
    for (char c : heading.text)
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    static constexpr std::array<std::string_view, 12> known{"",      "token", "tokens", "word",
                                                            "words", "label", "labels", "name",
                                                            "names", "text",  "id",     "index"};
    return std::find(known.begin(), known.end(), name) != known.end();
}

/// `header` has no fields where there is none.
bool has_label_column(const CsvLine& header, const CsvLine& first_row, const Source& source,
                      Guess guess) {
    if (guess != Guess::automatic) return guess == Guess::yes;
    const auto& fields = first_row.fields;
    if (fields.size() < 2) return false;
    if (!fields[0].quoted && has_decimal_comma(fields[0].text)) return false;
    if (!header.fields.empty() && names_labels(header.fields[0])) return true;
    if (!is_number(fields[0]) && starts_like_number(fields[0]))
        throw Error(ErrorKind::input, source.place(fields[0].offset),
                    "found '" + shortened(fields[0].text) +
                        "'; expected a number, or a label in quotes or with --csv-labels yes");
    if (!is_number(fields[0])) return fields[0].quoted || !fields[0].text.empty();
    return fields[0].quoted &&
           std::none_of(fields.begin() + 1, fields.end(), [](const Field& f) { return f.quoted; });
}

std::string count_text(std::size_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

class MatrixBuilder {
public:
    /// Every row has the width of the first one.
    MatrixBuilder(const Source& source, const ArrayRules& rules, bool labelled,
                  const CsvLine& first_row)
        : source_(source), rules_(rules), labelled_(labelled), fields_(first_row.fields.size()),
          width_line_(first_row.line) {}

    void add(const CsvLine& record) {
        const std::size_t first = labelled_ ? 1 : 0;
        if (record.fields.size() != fields_)
            throw Error(ErrorKind::input, source_.name + ":" + std::to_string(record.line),
                        count_text(record.fields.size() - first, "value") + "; expected " +
                            std::to_string(fields_ - first) + " as in line " +
                            std::to_string(width_line_));
        if (labelled_) result_.labels.push_back(record.fields[0].text);
        for (std::size_t i = first; i < fields_; ++i) add_number(record.fields[i]);
        ++rows_;
    }

    LabelledMatrix finish() {
        result_.matrix.values = to_array(values_, {rows_, fields_ - (labelled_ ? 1 : 0)});
        return std::move(result_);
    }

private:
    void add_number(const Field& field) {
        const ParsedNumber number = parse_loose_number(field.text);
        if (field.text.empty())
            throw Error(ErrorKind::input, source_.place(field.offset),
                        "an empty field; expected a number");
        if (number.length != field.text.size())
            throw Error(
                ErrorKind::input, source_.place(field.offset),
                "found '" + shortened(field.text) + "'; expected a number" +
                    (has_decimal_comma(field.text) ? " with a decimal point, not a comma" : ""));
        const std::string problem = complaint(number.value, field.text, rules_);
        if (!problem.empty()) throw Error(ErrorKind::input, source_.place(field.offset), problem);
        values_.push_back(rounded_once(number.value, field.text, rules_.dtype));
    }

    const Source& source_;
    ArrayRules rules_;
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
        throw Error(ErrorKind::input, source.name + ":" + std::to_string(comment.line),
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

LabelledMatrix read_lines(CsvLineReader& reader, CsvLine& row, const Source& source,
                          const ArrayRules& rules, bool labelled) {
    MatrixBuilder builder(source, rules, labelled, row);
    do builder.add(row);
    while (reader.next(row));
    return builder.finish();
}

}  // namespace

LabelledMatrix read_csv(const Source& source, const ArrayRules& rules, const CsvStyle& style,
                        ThreadPool* workers, std::size_t piece_size) {
    CsvLineReader reader(source);
    CsvLine header, row;
    bool more = reader.next(row);
    // With a shape there are numbers only, unless the style says otherwise.
    const bool has_shape = reader.shape().line != 0;
    const auto guess = [&](Guess given) {
        return has_shape && given == Guess::automatic ? Guess::no : given;
    };
    if (more && is_header(row, source, guess(style.header))) {
        header = std::move(row);
        more = reader.next(row);
    }
    if (!more && header.fields.empty())
        throw Error(ErrorKind::input, source.name, "has no row of numbers; expected at least one");
    if (!more)
        throw Error(ErrorKind::input, source.place(header.fields[0].offset),
                    "found '" + shortened(header.fields[0].text) +
                        "' and no number on this line; expected a row of numbers");
    const bool labelled = has_label_column(header, row, source, guess(style.labels));
    if (labelled && row.fields.size() < 2)
        throw Error(ErrorKind::input, source.name + ":" + std::to_string(row.line),
                    "one field, taken for a label; expected numbers after it");
    const bool short_header = labelled && header.fields.size() + 1 == row.fields.size();
    if (!header.fields.empty() && header.fields.size() != row.fields.size() && !short_header)
        throw Error(ErrorKind::input, source.name + ":" + std::to_string(row.line),
                    count_text(row.fields.size(), "field") + "; expected " +
                        std::to_string(header.fields.size()) + " as in the header, line " +
                        std::to_string(header.line));
    const CsvRowStyle rows{reader.separator(), row.fields.size(), labelled};
    auto read = read_csv_rows(source.text.substr(row.offset), rows, rules, workers, piece_size);
    if (!read) read = read_lines(reader, row, source, rules, labelled);
    if (has_shape) take_shape(read->matrix.values, reader.shape(), rules, source);
    for (Field& field : header.fields) read->header.push_back(std::move(field.text));
    return std::move(*read);
}

}  // namespace attn::io
