// A result's array as CSV or TSV: one line per row of the last axis, after its label.
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/read/csv_parts.hpp"
#include "io/text/text.hpp"
#include "io/write/output_formats.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {

namespace {

/// Whether the labels could be numbers in spite of their quotes: "1,000".
bool may_be_numbers(std::span<const std::string> labels, std::string_view separator) {
    const auto is_word = [](const std::string& label) { return cell_of(label) == Cell::word; };
    const auto is_number = [&](const std::string& label) {
        return is_number_to_quote(label, separator.front());
    };
    return std::ranges::none_of(labels, is_word) && std::ranges::any_of(labels, is_number);
}

/// Whether the first row's numbers could be names of columns: 0, 1, 2, ...; after a label that is
/// empty or names labels, any names of a header. Such a row requires a header or a shape before it.
template <class T>
bool may_be_header(const Array<T>& rows, std::span<const std::string> labels) {
    const std::size_t columns = rows.shape().back();
    bool counts = true;
    for (std::size_t i = 0; i < columns; ++i)
        counts = counts && static_cast<double>(rows.data()[i]) == static_cast<double>(i);
    return counts || (!labels.empty() && names_labels(labels[0]));
}

/// Whether a line must come before the rows, of which these are the first: a reader may take them
/// for a header or, without labels, their first column for an index.
template <class T>
bool needs_line_before(const Array<T>& rows, std::span<const std::string> labels,
                       std::size_t count) {
    const std::size_t columns = rows.shape().back(), found = rows.size() / columns;
    const auto whole = [](T value) { return std::trunc(static_cast<double>(value)); };
    bool counts = labels.empty() && count > 1 && (rows.data()[0] == 0 || rows.data()[0] == 1);
    for (std::size_t row = 0; counts && row < found; ++row)
        counts = whole(rows.data()[row * columns]) == whole(rows.data()[0]) + double(row);
    const auto is_decimal = [&](T value) { return whole(value) != static_cast<double>(value); };
    return may_be_header(rows, labels) ||
           (counts && (found < count || std::ranges::any_of(rows, is_decimal)));
}

/// Computes the stream's first rows, and buffers them for later reads.
template <class T>
bool needs_line_before(RowStream<T>& stream, std::span<const std::string> labels,
                       std::size_t count) {
    Array<T> rows = stream.next();
    const bool may_be = needs_line_before(rows, labels, count);
    stream.next = [rows = std::move(rows), next = std::move(stream.next)]() mutable {
        return rows.size() != 0 ? std::exchange(rows, Array<T>::from_shape({0, 0})) : next();
    };
    return may_be;
}

}  // namespace

void refuse_zeros(std::span<const std::string> labels) {
    for (const std::string& label : labels)
        if (label.find('\0') != std::string::npos)
            throw Error(ErrorKind::input, "label " + std::to_string(&label - labels.data()), "'",
                        shortened(label),
                        "' holds U+0000, which text may not; expected another label or format");
}

std::string quoted_field(const std::string& text) {
    return '"' + replaced(text, {{'"', "\"\""}}) + '"';
}

namespace {

/// A label as the text of a field. A field ends with its line, so line breaks are escaped.
std::string text_of(const std::string& label) {
    return replaced(label, {{'\n', "\\x0a"}, {'\r', "\\x0d"}});
}

/// Whether read_csv also takes it for a word without quotes.
bool is_plain(const std::string& text) {
    return cell_of(text) == Cell::word && text.find_first_of("\",;\t") == std::string::npos &&
           text.front() != '#' && text.front() != ' ' && text.back() != ' ' &&
           !text.starts_with("\ufeff");
}

std::string label_field(const std::string& label) {
    const std::string text = text_of(label);
    return is_plain(text) ? text : quoted_field(text);
}

/// The labels of the columns, all quoted if one of them is not a word; otherwise 0, 1, 2, ... if
/// the first row could be taken for a header. Empty if neither is needed.
std::string header_of(std::span<const std::string> labels, std::size_t columns, bool is_needed,
                      std::string_view separator) {
    std::string line;
    if (labels.empty() && !is_needed) return line;
    std::vector<std::string> names;
    for (const std::string& label : labels) names.push_back(text_of(label));
    if (may_be_numbers(names, separator)) {
        if (!is_needed) return line;
        names.clear();
    }
    const bool are_words =
        std::ranges::all_of(names, [](const auto& name) { return cell_of(name) == Cell::word; });
    for (std::size_t i = 0; i < columns; ++i) {
        line += separator;
        if (names.empty())
            line += std::to_string(i);
        else
            line += are_words ? label_field(names[i]) : quoted_field(names[i]);
    }
    return line += '\n';
}

void write_separated(Output& out, const Report& report, const NumberStyle& style,
                     std::string_view separator) {
    const NamedArray& array = report.arrays.front();
    NamedArray streamed{array.name, {}, {}, array.stream};
    const std::vector<std::size_t> shape = shape_of(array);
    const bool is_matrix = shape.size() == 2;
    const auto labels_on = [&](std::size_t axis) {
        return is_matrix ? labels_of(report, array, axis) : std::span<const std::string>{};
    };
    const std::span<const std::string> rows = labels_on(0), columns = labels_on(1);
    const auto looks = [&](auto& values) { return needs_line_before(values, rows, shape[0]); };
    const bool needs_first_line = is_matrix && (array.stream ? std::visit(looks, *streamed.stream)
                                                             : std::visit(looks, array.values));
    if (!rows.empty()) {
        refuse_zeros(rows);
        refuse_zeros(columns);
        const bool is_needed = needs_first_line || may_be_numbers(rows, separator);
        out << header_of(columns, shape[1], is_needed, separator);
    } else if (!is_matrix || needs_first_line) {
        const char* before = "# shape: ";
        for (std::size_t length : shape)
            out << std::exchange(before, ",") << std::to_string(length);
        out << "\n";
    }
    const auto label = [&](TextBuffer& text, const auto&, std::size_t row) {
        if (!rows.empty()) (text += label_field(rows[row])) += separator;
    };
    const auto end_line = [](TextBuffer& text, const auto&, std::size_t) { text += '\n'; };
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
