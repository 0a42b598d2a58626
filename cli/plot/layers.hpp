// Combines several results into one: the layers of a model.
#pragma once

#include <string>
#include <vector>

#include "cli/plot/drawn_result.hpp"
#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::cli {

/// What `attn plot` draws.
struct Drawing {
    io::Report report;  ///< of several results: their arrays, stacked along a new axis "layer"
    std::string place;  ///< of the first result
    std::string named;  ///< the array that its path names, or empty
    bool is_selected = false;        ///< `named` is stacked from one array of each result
    std::vector<std::string> notes;  ///< of CSV files, as in io::MatrixLabels
    bool is_plain = false;           ///< one array without a layout that describes it
    std::string lacks_weights;       ///< of a model's result: why the chosen layers have none
};

/// Selects the arrays of the first result to draw.
using ChooseArrays = FunctionRef<std::vector<const NamedArray*>(const Drawing&)>;

/// Reads one result, or several: one per file, or one per line of a single file, as `attn batch`
/// writes them. Of several results, only the selected arrays are kept, and the mask and the
/// weights, which determine masked cells. FILE:NAME selects an array of each, which may have
/// different names. A layer is named by its number in the config, else by its id, its file or its
/// array. The layers of a model's result are those of its arrays. Errors: kinds io and input; kind
/// usage for layers that the result does not have; kind input if two results differ in shapes,
/// labels, types, queries or arrays.
Drawing read_drawing(const std::vector<std::string>& paths, const Naming& naming,
                     ChooseArrays choose, ThreadPool& workers);

}  // namespace attn::cli
