// Reads results for the commands that process them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/plan/settings.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

struct ResultArray {
    std::string name;  ///< "array" if the file does not name it
    Array<double> values;
    std::optional<Dtype> dtype;  ///< from a binary file of several arrays; else the result's
    bool integers = false;       ///< integers or booleans in the file; text has no types
    /// The rounding errors of values that were 64-bit integers; empty if all are small enough.
    std::optional<Array<double>> rounding_errors = {};
};

/// The contents of a file: a result of attn, or one array.
struct ResultFile {
    std::string place;  ///< for errors: the path, or <stdin>
    std::string named;  ///< the array that the path names, or empty
    std::vector<ResultArray> arrays;
    bool is_one_array = false;                    ///< not a result
    std::vector<std::string> column_labels = {};  ///< of the one array in a file of CSV, or empty
    std::string note = {};                        ///< as in io::MatrixLabels
    bool is_text = false;        ///< elements are the shortest decimals of their dtype
    std::optional<Dtype> dtype;  ///< of a result's config, or of the one array in a binary file
    /// The members of a result besides its arrays, as far as the file has them: mode, id, config,
    /// shapes, layout, tokens and context_tokens.
    std::shared_ptr<const nlohmann::json> head;
};

/// The members of a result besides its arrays, see ResultFile::head. Reads no array.
nlohmann::json head_in(const io::InputFile& file);

/// A member of an object, or null.
nlohmann::json member(const nlohmann::json& object, const std::string& key);

/// The labels that a result's head holds under a key, or nothing.
std::optional<std::vector<std::string>> labels_in(const nlohmann::json& head, const char* key);

/// The maximum number of bytes of the arrays that read_result would read.
double bytes_to_read(const io::InputFile& file, bool whole);

/// Reads a result in any format that attn writes, the one array of a file, or the array that a path
/// FILE:NAME names. With `whole`, the named array of a result comes with all others. The rank is at
/// most 4, or with `whole` 5, with layers before the batch. Errors: kind io; kind input if the file
/// violates its format, holds no array or needs more memory than there is.
ResultFile read_result(const io::InputFile& file, ThreadPool& workers, bool whole,
                       const io::CsvStyle& style = {});

/// Opens the results in a file without reading their arrays: one, or one per line of NDJSON.
/// Errors: kind io; kind input if the file violates its format, holds too many results or has a
/// line of a failed record.
std::vector<io::InputFile> open_results(const std::string& path);

}  // namespace attn::cli
