// A result that is read back, for the commands that look at results.
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
    std::string name;  ///< "array" where the file gives it none
    Array<double> values;
    std::optional<Dtype> dtype;  ///< as a binary file of several says it; else the result's
    bool integers = false;       ///< of integers or booleans; text has no types
    /// What the values lose of 64-bit integers; empty where they lose nothing.
    std::optional<Array<double>> rounding_errors = {};
};

/// What a file holds: a result of attn, or one array.
struct ResultFile {
    std::string place;  ///< for errors: the path, or <stdin>
    std::string named;  ///< the array that the path names, or empty
    std::vector<ResultArray> arrays;
    bool is_one_array = false;                    ///< and no result
    std::vector<std::string> column_labels = {};  ///< of the one array in a file of CSV, or empty
    std::string note = {};                        ///< as io::MatrixLabels has it
    bool is_text = false;        ///< numbers are decimals, the shortest ones of their dtype
    std::optional<Dtype> dtype;  ///< of a result's config, or of the one array in a binary file
    /// What a result says beside its arrays: an object of mode, id, config, shapes, tokens and
    /// context_tokens, each where it is said.
    std::shared_ptr<const nlohmann::json> head;
};

/// What a result says beside its arrays, see ResultFile::head: none of them is read for it.
nlohmann::json head_in(const io::InputFile& file);

/// Bytes of the arrays that read_result would read, at most.
double bytes_to_read(const io::InputFile& file, bool whole);

/// Reads a result in any format that attn writes, or the one array of a file, or the array that a
/// path FILE:NAME names, with `whole` beside all others where it is one of a result; of rank 4 at
/// most, or with `whole` of rank 5, with layers before the batch. Errors: kind io; kind input where
/// the file breaks its format, holds no array or needs more memory than there is.
ResultFile read_result(const io::InputFile& file, ThreadPool& workers, bool whole,
                       const io::CsvStyle& style = {});

/// The results in a file, which are not read yet: one, or one a line of NDJSON. Errors: kind io;
/// kind input where the file breaks its format or has a line of a record that failed.
std::vector<io::InputFile> open_results(const std::string& path);

}  // namespace attn::cli
