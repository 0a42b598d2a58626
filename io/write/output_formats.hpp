// The output formats, one row each: a row holds all properties of a format, and its writer has a
// separate file.
#pragma once

#include <initializer_list>
#include <memory>

#include "io/file/output_folder.hpp"
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

/// Every array, with a header and a line for each element: the array's name if there are several,
/// the layer of a model, the index on each axis, the labels there are (`query_token`), the value.
/// Labels are quoted as in RFC 4180; NaN and infinities are NaN, inf and -inf. Accepts streams.
void write_csv_long(Output& out, const Report& report, const NumberStyle& style);

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

/// The manifest of a folder: the head as JSON, and the files of the arrays.
void write_manifest(Output& out, const Report& report, const NumberStyle& style);

/// That folder, with an npy file for each array: all is written, and `commit` gives it its name.
/// Errors: kind io.
std::unique_ptr<OutputFolder> write_folder(const std::string& path, Report report);

using Writer = void (*)(Output&, const Report&, const NumberStyle&);

/// Writes the arrays of many results (array_bytes.hpp).
using ArchiveWriter = void (*)(Output&, std::span<ArchiveEntry>);

/// Which types of --store a format holds.
namespace stores {
inline constexpr unsigned none = 0, float16 = 1, bfloat16 = 2, integers = 4, float8 = 8;
}
constexpr unsigned flag_of(const StoredType& type) {
    return !is_float(type.kind)                ? stores::integers
           : type.is_float8()                  ? stores::float8
           : type.kind == NumberType::bfloat16 ? stores::bfloat16
                                               : stores::float16;
}

struct OutputFormat {
    std::string_view name;
    std::array<std::string_view, 3> suffixes{};  ///< errors show the first
    Writer write = nullptr;                      ///< null: nothing is written
    unsigned stores = stores::none;
    ArchiveWriter write_archive = nullptr;  ///< null: a file holds one result
    bool one_array = false;                 ///< it holds one array
    bool binary = false;                    ///< bytes that a terminal must not show
    bool streams = false;                   ///< arrays are written while they are computed
    bool decimals = false;                  ///< numbers are text with selectable digits
    bool json = false;                      ///< --nonfinite applies
    bool breaks_lines = false;              ///< may be written with one line per row
    bool has_head = false;                  ///< it holds a result's head
    bool holds_weights = false;             ///< arrays that a model can be read from
    bool is_folder = false;                 ///< of files; `write` writes its manifest
    bool marks_masked = false;              ///< masked cells have a mark instead of a number
    bool lists_elements = false;  ///< a line for each element, with its indices and labels
    bool of_batch = false;        ///< may be what a batch writes

    /// Whether --out-dir writes it: arrays of many results in a file, or one result without a head.
    constexpr bool packs() const {
        return write_archive != nullptr || (stores != stores::none && !has_head);
    }
};

constexpr OutputFormat with(OutputFormat format,
                            std::initializer_list<bool OutputFormat::*> properties) {
    for (bool OutputFormat::*const property : properties) format.*property = true;
    return format;
}

inline constexpr std::array<OutputFormat, 14> output_formats = [] {
    using F = OutputFormat;
    constexpr unsigned floats = stores::float16 | stores::bfloat16 | stores::float8;
    return std::array<F, 14>{{
        with({"json", {".json"}, write_json},
             {&F::streams, &F::decimals, &F::json, &F::breaks_lines, &F::has_head,
              &F::holds_weights, &F::of_batch}),
        // The same document, always on one line.
        with({"ndjson", {".ndjson", ".jsonl"}, write_json},
             {&F::streams, &F::decimals, &F::json, &F::has_head, &F::of_batch}),
        with({"csv", {".csv"}, write_csv}, {&F::one_array, &F::streams, &F::decimals}),
        with({"tsv", {".tsv"}, write_tsv}, {&F::one_array, &F::streams, &F::decimals}),
        with({"csv-long", {".long.csv"}, write_csv_long},
             {&F::streams, &F::decimals, &F::lists_elements, &F::of_batch}),
        with({"npy", {".npy"}, write_npy, stores::float16 | stores::integers},
             {&F::one_array, &F::binary, &F::streams}),
        with({"npz", {".npz"}, write_npz, stores::float16, write_npz_archive},
             {&F::binary, &F::streams, &F::has_head, &F::holds_weights}),
        with(
            {"safetensors", {".safetensors"}, write_safetensors, floats, write_safetensors_archive},
            {&F::binary, &F::streams, &F::has_head, &F::holds_weights}),
        with({"torch", {".torch"}, write_torch}, {&F::decimals}),
        with({"table", {".table"}, write_table}, {&F::decimals, &F::marks_masked}),
        with({"c", {".h"}, write_c, floats | stores::integers}, {&F::streams}),
        with({"memh", {".memh", ".mem"}, write_memh, floats | stores::integers}, {&F::streams}),
        with({"folder", {"/"}, write_manifest, stores::float16 | stores::integers},
             {&F::binary, &F::streams, &F::has_head, &F::is_folder}),
        with({"none"}, {&F::streams}),
    }};
}();

/// The first format, which is the default.
inline constexpr const OutputFormat* default_format = &output_formats.front();

}  // namespace attn::io
