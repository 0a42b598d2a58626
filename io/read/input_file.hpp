// A file of any input format, and the selected array.
#pragma once

#include "io/read/array_file.hpp"
#include "io/read/csv.hpp"
#include "io/read/json_document.hpp"
#include "io/read/raw_numbers.hpp"

namespace attn::io {

struct InputFormat;  // input_formats.hpp

/// "file.npz:name" is the array `name` of file.npz, and "file.raw:float32:2x3" the numbers in it,
/// unless a file has the full name.
struct DataPath {
    std::string file;
    std::string array;                   ///< empty if none is named
    std::optional<RawNumbers> raw = {};  ///< the type and the shape
};
DataPath split_data_path(const std::string& path);

/// Whether the path names standard input, "-", or an array of it.
bool is_standard_input(const std::string& path);

/// Standard input can be read only once. Errors: kind usage if several paths name it.
void require_one_standard_input(const std::vector<std::string>& paths);

/// Exactly one of `document` and `arrays` is set, or none for CSV and for lines of requests or
/// results.
struct InputFile {
    std::string name;      ///< the path, or <stdin>
    std::string location;  ///< the name in errors: the name, or "name:line" of a line
    std::string array;     ///< the array named in the path, or empty
    const InputFormat* format = nullptr;           ///< the row of the table
    std::shared_ptr<const Source> source;          ///< of the text formats
    std::shared_ptr<const JsonDocument> document;  ///< json, and one object or array as ndjson
    std::optional<ArrayFile> arrays;               ///< of the binary formats, C, memh

    bool holds_object() const { return document != nullptr && !document->is_array(); }
    /// The bytes of its text in memory, and of the document that its lines were joined to.
    double text_bytes() const {
        if (source == nullptr) return 0;
        const bool is_joined = document != nullptr && !document->is_of(*source);
        return static_cast<double>(source->text.size()) * (is_joined ? 2 : 1);
    }
};

/// An array of a file, not read yet: one of a binary file, or a member of a JSON object. Valid
/// while the file's arrays or document exist; the file may be moved.
struct FileArray {
    const StoredArray* stored = nullptr;
    const JsonDocument* document = nullptr;  ///< of the member
    JsonMember member = {};

    explicit operator bool() const { return stored != nullptr || document != nullptr; }
    NumberArray read_numbers(const ArrayRules& rules, ThreadPool* workers) const;
    /// In the rules' dtype.
    RealArray read_reals(const ArrayRules& rules, ThreadPool* workers) const;
};

/// The array or the JSON member of this name; false if there is none. A member need not be an
/// array.
FileArray array_in(const InputFile& file, const std::string& name);

/// Opens a file without reading its arrays. Without `format`, the suffix determines the format,
/// else the first bytes. Errors: kind io if it cannot be read; kind input if it violates its
/// format.
InputFile open_input_file(const std::string& path, const InputFormat* format = nullptr,
                          const Access& access = {});

/// A line of JSON in memory, as a file. Errors: kind input.
InputFile input_file_of_line(Source line);

/// The arrays of a JSON object, all read at once: for weights, which have names. A result's schema
/// and config become the metadata. Errors: as JsonDocument::read_array.
ArrayFile arrays_of(const JsonDocument& document, const std::string& name);

/// The array named in the path, or the only one, of a binary file. Errors: kind input.
const StoredArray& stored_array(const InputFile& file);

/// Labels of a matrix: one per row, one per column; or empty.
struct MatrixLabels {
    std::vector<std::string> rows, columns;
    std::vector<std::string> header = {};  ///< of CSV: the fields of its header line
    std::string note = {};  ///< of CSV: the line and column that are not data, or empty
    bool counts = false;    ///< of CSV: as in LabelledMatrix
    bool is_guess = false;  ///< the note is on what may have been meant otherwise
};

/// The array named in the path, or the only one. Its labels go to `labels`, if not null. Errors:
/// kind input, listing the arrays if there are several and none is named.
NumberArray read_one_array(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                           const CsvStyle& style = {}, MatrixLabels* labels = nullptr);

/// The same in the rules' dtype: those of binary files are read directly into the result.
RealArray read_reals(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                     const CsvStyle& style = {}, MatrixLabels* labels = nullptr);

}  // namespace attn::io
