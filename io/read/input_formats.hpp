// The input formats, one row each: how a format is recognised, opened and read.
#pragma once

#include <array>

#include "io/read/input_file.hpp"

namespace attn::io {

struct InputFormat {
    std::string_view name;
    std::array<std::string_view, 4> suffixes;
    bool text;   ///< UTF-8, read as a whole
    bool named;  ///< its arrays have names, FILE:NAME
    /// Of binary formats: whether the first bytes are theirs, and the arrays.
    bool (*starts)(std::string_view start) = nullptr;
    ArrayFile (*open)(const std::shared_ptr<const Bytes>& bytes) = nullptr;
    /// The arrays of text that attn wrote for hardware.
    ArrayFile (*parse)(const Source& source) = nullptr;
};

inline constexpr std::string_view npy_magic = "\x93NUMPY";

constexpr bool starts_as_npy(std::string_view text) {
    return text.starts_with(npy_magic);
}
constexpr bool starts_as_npz(std::string_view text) {
    return text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06");
}
/// A length below 2^32, then the header.
constexpr bool starts_as_safetensors(std::string_view text) {
    using namespace std::string_view_literals;
    return text.size() > 8 && text[8] == '{' && text.substr(4, 4) == "\0\0\0\0"sv;
}
constexpr bool starts_as_gguf(std::string_view text) {
    return text.starts_with("GGUF");
}

/// Arrays in C, and words of $readmemh as attn writes them. Errors: kind input.
bool starts_as_c(std::string_view text);
bool starts_as_memh(std::string_view text);
ArrayFile parse_c(const Source& source);
ArrayFile parse_memh(const Source& source);

/// The older form of torch.save, which begins with the pickle of a number.
bool starts_as_torch(std::string_view start);
/// Whether a zip file is one of torch.save. Errors: kind input.
bool is_torch_zip(const Bytes& bytes);

/// manifest.json of a folder of npy files, which are then opened. Errors: kind input.
ArrayFile open_manifest(const std::shared_ptr<const Bytes>& bytes);
inline constexpr std::string_view manifest_name = "manifest.json";

/// The path of a folder's manifest; empty if there is none, or no folder.
std::string manifest_in(const std::string& folder);

/// A dictionary in msgpack whose first key is text.
bool starts_as_flax(std::string_view start);

/// ONNX's TensorProto: sizes, then a type.
bool starts_as_tensor_proto(std::string_view start);

inline constexpr std::array<InputFormat, 13> input_formats{{
    {"json", {".json"}, true, true},
    {"ndjson", {".ndjson", ".jsonl"}, true, true},
    {"c", {".h", ".hpp", ".c"}, true, true, nullptr, nullptr, parse_c},
    {"memh", {".memh", ".mem", ".hex"}, true, true, nullptr, nullptr, parse_memh},
    {"csv", {".csv", ".tsv", ".long.csv", ".long.tsv"}, true, false},
    {"npy", {".npy"}, false, false, starts_as_npy, open_npy},
    {"npz", {".npz"}, false, true, starts_as_npz, open_npz},
    {"safetensors", {".safetensors"}, false, true, starts_as_safetensors, open_safetensors},
    {"gguf", {".gguf"}, false, true, starts_as_gguf, open_gguf},
    {"pt", {".pt", ".pth", ".bin", ".ckpt"}, false, true, starts_as_torch, open_torch},
    {"folder", {}, false, true, nullptr, open_manifest},
    {"msgpack", {".msgpack"}, false, true, starts_as_flax, open_flax},
    {"pb", {".pb"}, false, true, starts_as_tensor_proto, open_tensor_proto},
}};

inline constexpr const InputFormat *json_input = &input_formats[0],
                                   *ndjson_input = &input_formats[1], *c_input = &input_formats[2],
                                   *memh_input = &input_formats[3], *csv_input = &input_formats[4],
                                   *npz_input = &input_formats[6], *torch_input = &input_formats[9],
                                   *folder_input = &input_formats[10];

/// The format of a file's suffix, or null. Errors: kind unsupported, for known formats that are not
/// supported.
const InputFormat* format_of_name(const std::string& path);

/// Whether the suffix is that of a known format that is not supported.
bool is_unread_name(const std::string& path);

/// Whether FILE:NAME may name an array of this file.
bool may_hold_names(const std::string& path);

/// The binary format of the first bytes, if the name has none; or null.
const InputFormat* format_of_start(std::string_view start);

/// The format by the name, or null, and by the contents, which decide where the name is that of
/// bytes of many kinds, and between two kinds of zip files. Errors: kind input, of a zip file.
const InputFormat* format_of_contents(const InputFormat* named, const Bytes& bytes,
                                      std::string_view start);

/// Errors: this kind, for the first bytes of a known format that is not supported.
void refuse_unread(const std::string& name, std::string_view start,
                   ErrorKind kind = ErrorKind::input);

/// Errors: kind input for text that R, MATLAB, Octave or Mathematica print.
void refuse_printed(const std::string& name, std::string_view text);

/// The same for text.
const InputFormat& format_of_text(std::string_view text);

// NDJSON: text with one JSON value per line.

/// Whether the first line holds one complete list or object, and a later line begins with another.
bool looks_like_ndjson(std::string_view text);

/// Passes on each line that is not blank, with its number.
void for_each_line(const Source& source, FunctionRef<void(Source line)> take);

/// Lines that are one array: lists of one shape, which are its first axis, so that `[1, 2]` alone
/// is a matrix of one row; or objects with a list of numbers, and perhaps a text, as {"text": "a",
/// "embedding": [1, 2]}. Then the document is an object: the lists as a matrix of the name `key`,
/// and the texts as tokens; without a key the first line must have "embedding", "vector" or
/// "values". Null for other lines. Errors: kind input for a line without what the first one has,
/// and text after a list; and if there are several lists and no key.
std::shared_ptr<const JsonDocument> document_of_lines(const Source& source, std::string& key);

// The npy header of an array: magic, version, and a Python dictionary as text (NEP 1).

/// Reads a header through `read(offset, count)`, which returns bytes of the file; fills in the
/// array's shape, type and order, and returns the header's length. `size` is that of the whole
/// file: the elements must fill the rest. Errors: kind input at `location`.
std::uint64_t read_npy_header(
    FunctionRef<std::string(std::uint64_t offset, std::size_t count)> read, std::uint64_t size,
    const std::string& location, StoredArray& array);

/// A header of version 1.0 for little-endian numbers, a multiple of 64 bytes long.
std::string npy_header(std::string_view descr, const std::vector<std::size_t>& shape);

// Arrays as Python prints them.

/// Whether the text begins with tensor(, array( or Array(, or with a line that names such an array.
bool has_printed_opening(std::string_view text);

/// Whether the text is one: tensor([[...]]) of PyTorch, array([[...]]) of NumPy, Array([[...]]) of
/// JAX, or lists without commas between their elements, as NumPy's str() has them.
bool is_printed_array(std::string_view text);

/// The same array in JSON, of the same name and lines; arrays with names above them as an object.
/// What follows the numbers, such as a dtype, is left out. Errors: kind input, for "..." in place
/// of elements, and for words.
std::shared_ptr<const Source> json_of_printed_array(const Source& printed);

}  // namespace attn::io
