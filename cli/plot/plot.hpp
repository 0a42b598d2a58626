// `attn plot RESULT ...`: pictures of existing results, and what of them is drawn.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/pictures.hpp"
#include "core/base/function_ref.hpp"
#include "core/base/named_array.hpp"
#include "core/base/thread_pool.hpp"
#include "core/plan/plan.hpp"
#include "io/plot/heat_map.hpp"
#include "io/read/csv.hpp"
#include "io/read/input_file.hpp"
#include "io/read/result_view.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// What each axis of an array counts, as set by --axes: "layer", "batch", "heads", "q_len", ...
using AxisNames = std::vector<std::string_view>;

/// What flags add to the description of an array in its file.
struct Naming {
    AxisNames axes;  ///< of arrays of this rank; others have those of attn's array with their name
    std::vector<std::string> tokens, context_tokens;  ///< replace the results' own, or empty
    io::CsvStyle csv = {};
    std::vector<std::size_t> layers = {};  ///< to draw; empty: all
};

struct PlotRequest : Naming {
    std::vector<std::string> results;  ///< paths, or - for standard input; several are layers
    std::string output;                ///< a path; empty: the terminal
    std::string axes_list;             ///< the axes as given, or empty
    std::vector<std::string> arrays;   ///< to draw; empty: the weights, else all
    std::vector<std::size_t> heads;    ///< to draw; empty: all
    std::string title;                 ///< empty: derived from the array and the settings
    io::ColorScale scale = io::ColorScale::automatic;
};

/// Draws a result in any format that attn writes, or the one array of a file; several results are
/// layers. Cells are masked by the result's own `mask`, or else by the rules of its config. Notes
/// state how a file without a description is interpreted. Errors: kinds usage, input and io.
void plot(const PlotRequest& request);

// What `attn plot` draws: results and plain arrays as reports, several of them as layers.

/// Errors: kind usage for an unknown name, an axis named twice, and fewer than 2 or more than 5
/// axes.
AxisNames axes_named(const std::string& list);

/// The axes of an array that its file does not describe: layer, batch and heads, then those of
/// attn's array of its name, else rows and columns. Rows and columns are queries and keys if labels
/// for both are given, or if a CSV file labels them alike; rows are tokens if there is one for
/// each. `has_labels`: the file labels the rows of its only array.
AxisNames plain_axes(const std::string& name, const std::vector<std::size_t>& shape,
                     bool has_labels, const Naming& given, const io::MatrixLabels& found);

/// The mode of statistics of `attn scan`: their arrays are (layers, heads).
inline constexpr std::string_view scan_mode = "scan";

/// Reads all arrays, of a model's result those of the given layers, with the axes of the layout,
/// if the result has one and therefore a plan.
/// Plain arrays have the axes of attn's array of their name and rank, or rows and columns.
/// Given tokens label the rows of a plain array, and its columns if there is one token per
/// column. A note on CSV goes to `notes`. Errors: kind input if shapes or labels do not fit.
io::Report read_report(const io::ResultView& result, const std::optional<Plan>& plan,
                       const Naming& given, ThreadPool& workers, std::vector<std::string>& notes);

/// The masks of a model's attentions in these layers: those of each layer's settings, and of
/// padding. Errors: kind input if a layer's description is malformed.
std::vector<LayerMask> masks_of_model(const io::ResultHead& head,
                                      const std::vector<std::size_t>& layers);

/// Which cells are masked: by the report's own mask, or else by those of `masks`, where the axis
/// "layer" has these layers. The report must stay at its address. Errors: kind input if the mask
/// has other queries and keys than another array.
io::MaskedOf masked_in(const io::Report& report, std::vector<LayerMask> masks,
                       std::vector<std::size_t> layers, const std::string& location);

/// What `attn plot` draws.
struct Drawing {
    io::Report report;     ///< of several results: their arrays, stacked along a new axis "layer"
    std::string location;  ///< of the first result
    std::string named;     ///< the array that its path names, or empty
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

/// Keeps these heads, in this order, in all arrays with as many heads as the `drawn` ones. Returns
/// the arrays that can still be drawn. An array with fewer heads, such as keys that several heads
/// share, cannot. Arrays keep their addresses. Errors: those of indices_of, for the drawn array
/// of most heads.
std::vector<const NamedArray*> keep_heads(io::Report& report,
                                          const std::vector<const NamedArray*>& drawn,
                                          const std::vector<std::size_t>& heads);

/// Keeps these layers, in this order, in all arrays with an axis "layer", and labels them. Returns
/// their indices before. Errors: kind usage for a layer that it lacks, or if no array of
/// `location` has layers.
std::vector<std::size_t> keep_layers(io::Report& report, const std::vector<std::size_t>& layers,
                                     const std::string& location);

}  // namespace attn::cli
