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
};

/// What a file holds: a result of attn, or one array.
struct ResultFile {
    std::string place;  ///< for errors: the path, or <stdin>
    std::string named;  ///< the array that the path names, or empty
    std::vector<ResultArray> arrays;
    bool is_one_array = false;                    ///< and no result
    std::vector<std::string> column_labels = {};  ///< of the one array in a file of CSV, or empty
    bool is_text = false;        ///< numbers are decimals, the shortest ones of their dtype
    std::optional<Dtype> dtype;  ///< of a result's config, or of the one array in a binary file
    /// What a result says beside its arrays: an object of mode, id, config, shapes, tokens and
    /// context_tokens, each where it is said.
    std::shared_ptr<const nlohmann::json> head;
};

/// Reads a result in any format that attn writes, or the one array of a file, or the array that a
/// path FILE:NAME names, with `whole` beside all others where it is one of a result; of rank 4 at
/// most. Errors: kind io; kind input where the file breaks its format or holds no array.
ResultFile read_result_file(const std::string& path, ThreadPool& workers, bool whole = false);

/// The result in a file: the whole of one may have arrays of rank 5, with layers before the batch.
/// Errors: as read_result_file.
ResultFile read_result(const io::InputFile& file, ThreadPool& workers, bool whole);

/// The results in a file, which are not read yet: one, or one a line of NDJSON. Errors: kind io;
/// kind input where the file breaks its format or has a line of a record that failed.
std::vector<io::InputFile> open_results(const std::string& path);

}  // namespace attn::cli
