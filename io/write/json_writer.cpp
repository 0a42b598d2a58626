// A result as JSON. Numbers are converted directly to text: nlohmann_json would print a float32 as
// a float64, with 17 digits.

#include "core/operator/shown_axes.hpp"
#include "io/write/output_formats.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

std::string nonfinite_text(const std::string& word, Nonfinite nonfinite) {
    switch (nonfinite) {
        case Nonfinite::string: return '"' + word + '"';
        case Nonfinite::null: return "null";
        case Nonfinite::literal: break;
    }
    return word;
}

void break_line(TextBuffer& text, std::size_t depth, bool pretty) {
    if (pretty) text += "\n" + std::string(2 * depth, ' ');
}

RowFormat row_format(const NumberStyle& style) {
    const bool pretty = style.pretty;
    RowFormat format;
    format.separator = pretty ? ", " : ",";
    format.nan = nonfinite_text("NaN", style.nonfinite);
    format.infinity = nonfinite_text("Infinity", style.nonfinite);
    format.minus_infinity = nonfinite_text("-Infinity", style.nonfinite);
    format.decimals = style.decimals;
    format.marks_reals = true;
    format.open = [pretty](TextBuffer& text, const auto& shape, std::size_t row) {
        const std::size_t depth = shape.size() - 1;
        const std::size_t opened = depth - axes_that_turn(shape, row, 0);  // the outermost
        if (opened > 0) text += ',';
        for (std::size_t axis = opened; axis <= depth; ++axis) {
            if (axis > 0) break_line(text, axis + 1, pretty);
            text += '[';
        }
    };
    format.close = [pretty](TextBuffer& text, const auto& shape, std::size_t row) {
        const std::size_t depth = shape.size() - 1;
        text += ']';
        const std::size_t closed = axes_that_turn(shape, row, 1);
        for (std::size_t i = 0; i < closed; ++i) {
            break_line(text, depth - i, pretty);
            text += ']';
        }
    };
    return format;
}

/// Names of members and arrays are constants that need no escapes. In the pretty form each member
/// is on a separate line, like the rows below it.
void write_key(Output& out, std::string_view key, bool first, bool pretty) {
    if (!first) out << ",";
    out << (pretty ? "\n  \"" : "\"") << key << (pretty ? "\": " : "\":");
}

bool is_scalar(const NamedArray& array) {
    return array.axes.size() == 1 && array.axes[0] == scalar_axis;
}

/// A list with an entry for each layer of the array at `first`, and null where a layer has none.
/// Returns the index of the next array.
std::size_t write_layers(Output& out, const std::vector<NamedArray>& arrays, std::size_t first,
                         const RowFormat& format, ThreadPool* workers) {
    std::size_t i = first;
    for (; i < arrays.size() && arrays[i].layer && arrays[i].name == arrays[first].name; ++i) {
        out << (i == first ? "[" : ",");
        if (arrays[i].is_absent)
            out << "null";
        else
            write_rows(out, arrays[i], format, workers);
    }
    out << "]";
    return i;
}

}  // namespace

void write_json(Output& out, const Report& report, const NumberStyle& style) {
    bool first = true;
    out << "{";
    for (const auto& [key, value] : report.head) {
        write_key(out, key, first, style.pretty);
        out << value;
        first = false;
    }
    write_json_arrays(out, report.arrays, style, report.workers, first);
}

void write_json_arrays(Output& out, const std::vector<NamedArray>& arrays, const NumberStyle& style,
                       ThreadPool* workers, bool is_first) {
    const RowFormat format = row_format(style);
    RowFormat of_scalar = format;
    of_scalar.open = of_scalar.close = [](TextBuffer&, const auto&, std::size_t) {};
    for (std::size_t i = 0; i < arrays.size();) {
        write_key(out, arrays[i].name, is_first, style.pretty);
        i = arrays[i].layer
                ? write_layers(out, arrays, i, format, workers)
                : (write_rows(out, arrays[i], is_scalar(arrays[i]) ? of_scalar : format, workers),
                   i + 1);
        is_first = false;
    }
    out << (style.pretty ? "\n}\n" : "}\n");
}

}  // namespace attn::io
