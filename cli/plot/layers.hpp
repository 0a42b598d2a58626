// Several results as one: the layers of a model.
#pragma once

#include <string>
#include <vector>

#include "cli/plot/drawn_result.hpp"
#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::cli {

/// What `attn plot` draws.
struct Drawing {
    io::Report report;  ///< of several results: their arrays, one behind the other on axis "layer"
    io::IsBlocked is_blocked;
    std::string place;               ///< of the first result
    std::string named;               ///< the array that its path names, or empty
    std::vector<std::string> notes;  ///< of files of CSV, as ResultFile has them
    bool is_plain = false;           ///< one array with nothing beside it that says what it is
};

/// The arrays of the first result that are drawn.
using ChooseArrays = FunctionRef<std::vector<const NamedArray*>(const Drawing&)>;

/// Reads one result, or several: one a file, or one a line of a single file, as `attn batch` writes
/// them. Of several only what is chosen is kept, and the mask and the weights, which say what is
/// blocked. A layer is called by its number in the config, else by its id or its file's name.
/// Errors: kinds io and input; kind input where two results differ in shapes, labels, types or in
/// what they hold.
Drawing read_drawing(const std::vector<std::string>& paths, const Naming& naming,
                     ChooseArrays choose, ThreadPool& workers, const io::CsvStyle& style = {});

}  // namespace attn::cli
