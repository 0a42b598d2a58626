// The output formats, one row each: a row holds all properties of a format, and its writer has a
// separate file.
#pragma once

#include <array>
#include <string_view>

#include "io/write/report.hpp"

namespace attn::io {

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
};

inline constexpr std::array<OutputFormat, 10> output_formats{{
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
     .streams = true},
    {.name = "npz",
     .suffixes = {".npz"},
     .write = write_npz,
     .binary = true,
     .streams = true,
     .has_head = true,
     .holds_weights = true},
    {.name = "safetensors",
     .suffixes = {".safetensors"},
     .write = write_safetensors,
     .binary = true,
     .streams = true,
     .has_head = true,
     .holds_weights = true},
    {.name = "torch", .suffixes = {".torch"}, .write = write_torch, .decimals = true},
    {.name = "table",
     .suffixes = {".table"},
     .write = write_table,
     .decimals = true,
     .marks_masked = true},
    {.name = "none", .streams = true},
}};

/// The first format, which is the default.
inline constexpr const OutputFormat* default_format = &output_formats.front();

}  // namespace attn::io
