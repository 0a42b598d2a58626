// A file of any format that arrays come in, and the one array that is meant.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/thread_pool.hpp"
#include "io/file/source.hpp"
#include "io/read/array_file.hpp"
#include "io/read/csv.hpp"
#include "io/read/json_document.hpp"

namespace attn::io {

struct InputFormat;  // input_formats.hpp

/// "file.npz:name" is the array `name` of file.npz, unless a file has that whole name.
struct DataPath {
    std::string file;
    std::string array;  ///< empty where none is named
};
DataPath split_data_path(const std::string& path);

/// Exactly one of `document` and `arrays` is there, or none for CSV and for lines of NDJSON.
struct InputFile {
    std::string name;   ///< the path, or <stdin>
    std::string place;  ///< what errors call it: the name, or "name:line" of a line
    std::string array;  ///< the array that the path names, or empty
    const InputFormat* format = nullptr;           ///< the row of the table
    std::shared_ptr<const Source> source;          ///< of the text formats
    std::shared_ptr<const JsonDocument> document;  ///< json, and one object as ndjson
    std::optional<ArrayFile> arrays;               ///< npy, npz and safetensors

    bool holds_object() const { return document != nullptr && !document->is_array(); }
};

/// Opens a file; nothing of its arrays is read yet. Without `format` the name's suffix says what it
/// is, else its first bytes do. Errors: kind io where it cannot be read; kind input where it breaks
/// its format.
InputFile open_input_file(const std::string& path, const InputFormat* format = nullptr,
                          const Access& access = {});

/// A line of JSON that is here already, as a file. Errors: kind input.
InputFile input_file_of_line(Source line);

/// The arrays of a JSON object, all read at once: for weights, which have names. A result's schema
/// and config become the metadata. Errors: as JsonDocument::read_array.
ArrayFile arrays_of(const JsonDocument& document, const std::string& name);

/// Words beside a matrix: one a row, one a column; or empty.
struct MatrixLabels {
    std::vector<std::string> rows, columns;
    std::string note = {};  ///< of CSV: which line and column are not among the numbers, or empty
};

/// The array that the path names, or the only one. Its labels go to `labels`, where it is not null.
/// Errors: kind input, listing the arrays where there are several and none is named.
NumberArray read_one_array(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                           const CsvStyle& style = {}, MatrixLabels* labels = nullptr);

/// The same in the rules' dtype: a binary file's are read straight into place.
RealArray read_reals(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                     const CsvStyle& style = {}, MatrixLabels* labels = nullptr);

}  // namespace attn::io
