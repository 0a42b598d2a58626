// A result's one array as CSV: a row of the last axis a line.
#include <string>
#include <vector>

#include "io/row_text.hpp"
#include "io/writers.hpp"

namespace attn::io {

void write_csv(OutputFile& out, const Report& report, const NumberStyle& style) {
    const NamedArray& array = report.arrays.front();
    const std::vector<std::size_t> shape = shape_of(array);
    if (shape.size() != 2) {
        std::string text;
        for (std::size_t length : shape) text += (text.empty() ? "" : ",") + std::to_string(length);
        out << "# shape: " << text << "\n";
    }
    const auto nothing = [](RowText&, const auto&, std::size_t) {};
    const auto end_line = [](RowText& text, const auto&, std::size_t) { text += "\n"; };
    const RowFormat format{",", "nan", "inf", "-inf", style.decimals, nothing, end_line};
    write_rows(out, array, format, report.workers);
}

}  // namespace attn::io
