// A result's one array as CSV or TSV: a row of the last axis a line.
#include <string>
#include <utility>
#include <vector>

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

void write_separated(Output& out, const Report& report, const NumberStyle& style,
                     std::string_view separator) {
    const NamedArray& array = report.arrays.front();
    NamedArray streamed{array.name, {}, {}, array.stream};
    const auto looks = [](auto& rows) { return looks_like_header(rows); };
    const std::vector<std::size_t> shape = shape_of(array);
    if (shape.size() != 2 ||
        (array.stream ? std::visit(looks, *streamed.stream) : std::visit(looks, array.values))) {
        std::string text;
        for (std::size_t length : shape) text += (text.empty() ? "" : ",") + std::to_string(length);
        out << "# shape: " << text << "\n";
    }
    const auto nothing = [](RowText&, const auto&, std::size_t) {};
    const auto end_line = [](RowText& text, const auto&, std::size_t) { text += '\n'; };
    const RowFormat format{separator, "nan", "inf", "-inf", style.decimals, nothing, end_line};
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
