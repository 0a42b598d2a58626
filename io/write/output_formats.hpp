// The output formats, one row each: a row holds all properties of a format, and its writer has a
// separate file.
#pragma once

#include <initializer_list>

#include "io/write/report.hpp"

namespace attn::io {

/// JSON: the head's members, then one member per array, on one line unless pretty. Accepts streams.
void write_json(Output& out, const Report& report, const NumberStyle& style);

/// Each array in the form of PyTorch's `print(tensor)`: the same choice of fixed, integer or
/// scientific notation, line breaks at 80 columns, and summary above 1000 elements.
void write_torch(Output& out, const Report& report, const NumberStyle& style);

/// Aligned columns with token labels, for people.
void write_table(Output& out, const Report& report, const NumberStyle& style);

/// The report's first array, in the form that read_csv reads back: rows of the last axis. Labelled
/// rows of a matrix begin with their labels, below a header if the columns are labelled too, not
/// with numbers. If the rank is not 2, or unlabelled rows begin with 0, 1, 2, ..., a comment with
/// the shape comes first. Non-finite numbers are nan, inf and -inf. Accepts streams.
void write_csv(Output& out, const Report& report, const NumberStyle& style);

/// The same with tabs.
void write_tsv(Output& out, const Report& report, const NumberStyle& style);

/// The report's first array, without metadata. Accepts streams.
void write_npy(Output& out, const Report& report, const NumberStyle& style);

/// Every array, and the head as JSON metadata (array_file.hpp). Accept streams.
void write_npz(Output& out, const Report& report, const NumberStyle& style);
void write_safetensors(Output& out, const Report& report, const NumberStyle& style);

/// A header of C99 and C++: an array of constants for each array, nested by its axes, and its sizes
/// as macros. Accepts streams.
void write_c(Output& out, const Report& report, const NumberStyle& style);

/// The words of Verilog's $readmemh: the bits of each number in hexadecimal digits, one per line.
/// If there are several arrays, each begins with its address. Accepts streams. Errors: kind usage,
/// of the setting `emit`, for arrays of different widths.
void write_memh(Output& out, const Report& report, const NumberStyle& style);

using Writer = void (*)(Output&, const Report&, const NumberStyle&);

/// Writes the arrays of many results (array_bytes.hpp).
using ArchiveWriter = void (*)(Output&, std::span<ArchiveEntry>);

/// Which types of --store a format holds, each with those before it.
enum class Stores { none, float16, half_types, all };

struct OutputFormat {
    std::string_view name;
    std::array<std::string_view, 3> suffixes{};  ///< errors show the first
    Writer write = nullptr;                      ///< null: nothing is written
    Stores stores = Stores::none;
    ArchiveWriter write_archive = nullptr;  ///< null: a file holds one result
    bool one_array = false;                 ///< it holds one array
    bool binary = false;                    ///< bytes that a terminal must not show
    bool streams = false;                   ///< arrays are written while they are computed
    bool decimals = false;                  ///< numbers are text with selectable digits
    bool json = false;                      ///< --nonfinite applies
    bool breaks_lines = false;              ///< may be written with one line per row
    bool has_head = false;                  ///< it holds a result's head
    bool holds_weights = false;             ///< arrays that a model can be read from
    bool marks_masked = false;              ///< masked cells have a mark instead of a number
};

constexpr OutputFormat with(OutputFormat format,
                            std::initializer_list<bool OutputFormat::*> properties) {
    for (bool OutputFormat::*const property : properties) format.*property = true;
    return format;
}

inline constexpr std::array<OutputFormat, 12> output_formats = [] {
    using F = OutputFormat;
    return std::array<F, 12>{{
        with({"json", {".json"}, write_json}, {&F::streams, &F::decimals, &F::json,
                                               &F::breaks_lines, &F::has_head, &F::holds_weights}),
        // The same document, always on one line.
        with({"ndjson", {".ndjson", ".jsonl"}, write_json},
             {&F::streams, &F::decimals, &F::json, &F::has_head}),
        with({"csv", {".csv"}, write_csv}, {&F::one_array, &F::streams, &F::decimals}),
        with({"tsv", {".tsv"}, write_tsv}, {&F::one_array, &F::streams, &F::decimals}),
        with({"npy", {".npy"}, write_npy, Stores::float16},
             {&F::one_array, &F::binary, &F::streams}),
        with({"npz", {".npz"}, write_npz, Stores::float16, write_npz_archive},
             {&F::binary, &F::streams, &F::has_head, &F::holds_weights}),
        with({"safetensors",
              {".safetensors"},
              write_safetensors,
              Stores::half_types,
              write_safetensors_archive},
             {&F::binary, &F::streams, &F::has_head, &F::holds_weights}),
        with({"torch", {".torch"}, write_torch}, {&F::decimals}),
        with({"table", {".table"}, write_table}, {&F::decimals, &F::marks_masked}),
        with({"c", {".h"}, write_c, Stores::all}, {&F::streams}),
        with({"memh", {".memh", ".mem"}, write_memh, Stores::all}, {&F::streams}),
        with({"none"}, {&F::streams}),
    }};
}();

/// The first format, which is the default.
inline constexpr const OutputFormat* default_format = &output_formats.front();

}  // namespace attn::io
