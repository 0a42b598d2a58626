// A result's one array as CSV: a row of the last axis a line.
#include <string>
#include <vector>

#include "io/row_text.hpp"
#include "io/writers.hpp"

namespace attn::io {

namespace {

/// A first row 0, 1, 2, ... would be taken for pandas' header, or refused.
bool looks_like_header(const NamedArray& array, const std::vector<std::size_t>& shape) {
    return array.stream == nullptr &&
           std::visit(
               [&](const auto& values) {
                   for (std::size_t i = 0; i < shape.back(); ++i)
                       if (static_cast<double>(values.data()[i]) != static_cast<double>(i))
                           return false;
                   return true;
               },
               array.values);
}

}  // namespace

void write_csv(Output& out, const Report& report, const NumberStyle& style) {
    const NamedArray& array = report.arrays.front();
    const std::vector<std::size_t> shape = shape_of(array);
    if (shape.size() != 2 || looks_like_header(array, shape)) {
        std::string text;
        for (std::size_t length : shape) text += (text.empty() ? "" : ",") + std::to_string(length);
        out << "# shape: " << text << "\n";
    }
    const auto nothing = [](RowText&, const auto&, std::size_t) {};
    const auto end_line = [](RowText& text, const auto&, std::size_t) { text += '\n'; };
    const RowFormat format{",", "nan", "inf", "-inf", style.decimals, nothing, end_line};
    write_rows(out, array, format, report.workers);
}

}  // namespace attn::io
