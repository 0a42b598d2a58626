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
    /// Whether the first bytes, or the whole text, may have this format; called in the order of the
    /// table.
    bool (*starts)(std::string_view text);
    void (*open)(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
    NumberArray (*read)(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                        const CsvStyle& style, MatrixLabels* labels);
};

// The parts of the rows.
bool starts_as_json(std::string_view text);
bool starts_as_ndjson(std::string_view text);
bool starts_as_c(std::string_view text);
bool starts_as_memh(std::string_view text);
bool starts_as_csv(std::string_view text);  ///< any text may have this format
bool starts_as_npy(std::string_view text);
bool starts_as_npz(std::string_view text);
bool starts_as_safetensors(std::string_view text);
bool starts_as_gguf(std::string_view text);

void open_json_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
void open_ndjson_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
void open_c_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
void open_memh_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
void open_csv_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
void open_npy_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
void open_npz_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
void open_safetensors_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);
void open_gguf_file(InputFile& file, const std::shared_ptr<const Bytes>& bytes);

NumberArray read_json_file(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                           const CsvStyle& style, MatrixLabels* labels);
NumberArray read_csv_file(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                          const CsvStyle& style, MatrixLabels* labels);
NumberArray read_stored_file(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                             const CsvStyle& style, MatrixLabels* labels);

inline constexpr std::array<InputFormat, 9> input_formats{
    {{"json", {".json"}, true, true, starts_as_json, open_json_file, read_json_file},
     {"ndjson",
      {".ndjson", ".jsonl"},
      true,
      true,
      starts_as_ndjson,
      open_ndjson_file,
      read_json_file},
     {"c", {".h"}, true, true, starts_as_c, open_c_file, read_stored_file},
     {"memh", {".memh", ".mem"}, true, true, starts_as_memh, open_memh_file, read_stored_file},
     {"csv", {".csv", ".tsv"}, true, false, starts_as_csv, open_csv_file, read_csv_file},
     {"npy", {".npy"}, false, false, starts_as_npy, open_npy_file, read_stored_file},
     {"npz", {".npz"}, false, true, starts_as_npz, open_npz_file, read_stored_file},
     {"safetensors",
      {".safetensors"},
      false,
      true,
      starts_as_safetensors,
      open_safetensors_file,
      read_stored_file},
     {"gguf", {".gguf"}, false, true, starts_as_gguf, open_gguf_file, read_stored_file}}};

inline constexpr const InputFormat *json_input = &input_formats[0],
                                   *ndjson_input = &input_formats[1];

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
