// The input formats, one row each: how a format is recognised, opened and read.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/read/input_file.hpp"

namespace attn::io {

struct InputFormat {
    std::string_view name;
    std::array<std::string_view, 3> suffixes;
    bool text;   ///< UTF-8, read as a whole
    bool named;  ///< its arrays have names, FILE:NAME
    /// Of binary formats: whether the first bytes are theirs, and the arrays.
    bool (*starts)(std::string_view start) = nullptr;
    ArrayFile (*open)(const std::shared_ptr<const Bytes>& bytes) = nullptr;
    /// The arrays of text that attn wrote for hardware.
    ArrayFile (*parse)(const Source& source) = nullptr;
};

bool starts_as_npy(std::string_view start);
bool starts_as_npz(std::string_view start);
bool starts_as_safetensors(std::string_view start);
bool starts_as_gguf(std::string_view start);

/// A header of C, and words of $readmemh, as attn writes them. Errors: kind input.
bool starts_as_c(std::string_view text);
bool starts_as_memh(std::string_view text);
ArrayFile parse_c(const Source& source);
ArrayFile parse_memh(const Source& source);

inline constexpr std::array<InputFormat, 9> input_formats{{
    {"json", {".json"}, true, true},
    {"ndjson", {".ndjson", ".jsonl"}, true, true},
    {"c", {".h"}, true, true, nullptr, nullptr, parse_c},
    {"memh", {".memh", ".mem"}, true, true, nullptr, nullptr, parse_memh},
    {"csv", {".csv", ".tsv"}, true, false},
    {"npy", {".npy"}, false, false, starts_as_npy, open_npy},
    {"npz", {".npz"}, false, true, starts_as_npz, open_npz},
    {"safetensors", {".safetensors"}, false, true, starts_as_safetensors, open_safetensors},
    {"gguf", {".gguf"}, false, true, starts_as_gguf, open_gguf},
}};

inline constexpr const InputFormat *json_input = &input_formats[0],
                                   *ndjson_input = &input_formats[1],
                                   *csv_input = &input_formats[4];

/// The format of a file's suffix, or null. Errors: kind unsupported, for known formats that are not
/// supported.
const InputFormat* format_of_name(const std::string& path);

/// Whether the suffix is that of a known format that is not supported.
bool is_unread_name(const std::string& path);

/// Whether FILE:NAME may name an array of this file.
bool may_hold_names(const std::string& path);

/// The binary format of the first bytes, if the name has none; or null.
const InputFormat* format_of_start(std::string_view start);

/// Errors: kind input, for the first bytes of a known format that is not supported.
void refuse_unread(const std::string& name, std::string_view start);

/// The same for text.
const InputFormat& format_of_text(std::string_view text);

}  // namespace attn::io
