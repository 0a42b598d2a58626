// The output formats, one row each: a row holds all properties of a format, and its writer has a
// separate file.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "io/write/array_bytes.hpp"
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
    bool one_array = false;                      ///< it holds one array
    bool binary = false;                         ///< bytes that a terminal must not show
    bool streams = false;                        ///< arrays are written while they are computed
    bool decimals = false;                       ///< numbers are text with selectable digits
    bool json = false;                           ///< --nonfinite applies
    bool breaks_lines = false;                   ///< may be written with one line per row
    bool has_head = false;                       ///< it holds a result's head
    bool holds_weights = false;                  ///< arrays that a model can be read from
    bool marks_masked = false;                   ///< masked cells have a mark instead of a number
    Stores stores = Stores::none;
    ArchiveWriter write_archive = nullptr;  ///< null: a file holds one result
};

inline constexpr std::array<OutputFormat, 12> output_formats{{
    {.name = "json",
     .suffixes = {".json"},
     .write = write_json,
     .streams = true,
     .decimals = true,
     .json = true,
     .breaks_lines = true,
     .has_head = true,
     .holds_weights = true},
    {.name = "ndjson",
     .suffixes = {".ndjson", ".jsonl"},
     .write = write_json,  // the same document, always on one line
     .streams = true,
     .decimals = true,
     .json = true,
     .has_head = true},
    {.name = "csv",
     .suffixes = {".csv"},
     .write = write_csv,
     .one_array = true,
     .streams = true,
     .decimals = true},
    {.name = "tsv",
     .suffixes = {".tsv"},
     .write = write_tsv,
     .one_array = true,
     .streams = true,
     .decimals = true},
    {.name = "npy",
     .suffixes = {".npy"},
     .write = write_npy,
     .one_array = true,
     .binary = true,
     .streams = true,
     .stores = Stores::float16},
    {.name = "npz",
     .suffixes = {".npz"},
     .write = write_npz,
     .binary = true,
     .streams = true,
     .has_head = true,
     .holds_weights = true,
     .stores = Stores::float16,
     .write_archive = write_npz_archive},
    {.name = "safetensors",
     .suffixes = {".safetensors"},
     .write = write_safetensors,
     .binary = true,
     .streams = true,
     .has_head = true,
     .holds_weights = true,
     .stores = Stores::half_types,
     .write_archive = write_safetensors_archive},
    {.name = "torch", .suffixes = {".torch"}, .write = write_torch, .decimals = true},
    {.name = "table",
     .suffixes = {".table"},
     .write = write_table,
     .decimals = true,
     .marks_masked = true},
    {.name = "c", .suffixes = {".h"}, .write = write_c, .streams = true, .stores = Stores::all},
    {.name = "memh",
     .suffixes = {".memh", ".mem"},
     .write = write_memh,
     .streams = true,
     .stores = Stores::all},
    {.name = "none", .streams = true},
}};

/// The first format, which is the default.
inline constexpr const OutputFormat* default_format = &output_formats.front();

}  // namespace attn::io
