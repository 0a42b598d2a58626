// A result's one array as CSV or TSV: a row of the last axis a line, behind its label.
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/read/number_array.hpp"
#include "io/write/report.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {

namespace {

/// A first row 0, 1, 2, ... would be taken for pandas' header, or refused.
template <class T>
bool looks_like_header(const Array<T>& rows) {
    for (std::size_t i = 0; i < rows.shape().back(); ++i)
        if (static_cast<double>(rows.data()[i]) != static_cast<double>(i)) return false;
    return true;
}

/// The stream's first rows are made, and kept for whoever reads on.
template <class T>
bool looks_like_header(RowStream<T>& stream) {
    Array<T> rows = stream.next();
    const bool looks = looks_like_header(rows);
    stream.next = [rows = std::move(rows), next = std::move(stream.next)]() mutable {
        return rows.size() != 0 ? std::exchange(rows, Array<T>::from_shape({0, 0})) : next();
    };
    return looks;
}

bool starts_as_number(const std::string& label) {
    return parse_loose_number(label).length != 0;
}

bool is_word(const std::string& label) {
    return label.empty() || parse_loose_number(label).length != label.size();
}

/// A label as a field that read_csv takes for one: quoted where it could be something else. A field
/// ends with its line, so ends of lines stand as their numbers.
std::string field_of(const std::string& label) {
    std::string text;
    bool is_plain = !label.empty() && label.front() != '#' && label.front() != ' ' &&
                    label.back() != ' ' && !starts_as_number(label) && !label.starts_with("\ufeff");
    for (char c : label) {
        if (c == '\n' || c == '\r') {
            text += c == '\n' ? "\\x0a" : "\\x0d";
            continue;
        }
        if (c == '"') text += '"';
        text += c;
        is_plain = is_plain && c != '"' && c != ',' && c != ';' && c != '\t';
    }
    return is_plain ? text : '"' + text + '"';
}

/// The labels of the columns; else 0, 1, 2, ..., where the rows could be taken for something else.
/// Nothing where neither is needed.
std::string header_of(std::span<const std::string> labels, std::size_t columns, bool is_needed,
                      std::string_view separator) {
    std::string line;
    const bool are_words = !labels.empty() && std::all_of(labels.begin(), labels.end(), is_word);
    if (!are_words && !is_needed) return line;
    for (std::size_t i = 0; i < columns; ++i)
        (line += separator) += are_words ? field_of(labels[i]) : std::to_string(i);
    return line += '\n';
}

void write_separated(Output& out, const Report& report, const NumberStyle& style,
                     std::string_view separator) {
    const NamedArray& array = report.arrays.front();
    NamedArray streamed{array.name, {}, {}, array.stream};
    const auto looks = [](auto& rows) { return looks_like_header(rows); };
    const std::vector<std::size_t> shape = shape_of(array);
    const bool is_matrix = shape.size() == 2;
    const auto labels_on = [&](std::size_t axis) {
        return is_matrix ? labels_of(report, array.axes[axis], shape[axis])
                         : std::span<const std::string>{};
    };
    const std::span<const std::string> rows = labels_on(0), columns = labels_on(1);
    const bool counts = is_matrix && (array.stream ? std::visit(looks, *streamed.stream)
                                                   : std::visit(looks, array.values));
    if (!rows.empty()) {
        out << header_of(columns, shape[1], counts, separator);
    } else if (!is_matrix || counts) {
        std::string text;
        for (std::size_t length : shape) text += (text.empty() ? "" : ",") + std::to_string(length);
        out << "# shape: " << text << "\n";
    }
    const auto label = [&](RowText& text, const auto&, std::size_t row) {
        if (!rows.empty()) (text += field_of(rows[row])) += separator;
    };
    const auto end_line = [](RowText& text, const auto&, std::size_t) { text += '\n'; };
    const RowFormat format{separator, "nan", "inf", "-inf", style.decimals, label, end_line};
    write_rows(out, array.stream ? streamed : array, format, report.workers);
}

}  // namespace

void write_csv(Output& out, const Report& report, const NumberStyle& style) {
    write_separated(out, report, style, ",");
}

void write_tsv(Output& out, const Report& report, const NumberStyle& style) {
    write_separated(out, report, style, "\t");
}

}  // namespace attn::io
