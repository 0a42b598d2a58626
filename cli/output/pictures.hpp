// Pictures of results: their arrays, masks and plans.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"
#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"
#include "io/plot/picture.hpp"
#include "io/read/result_view.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// The format that the path's suffix specifies. Errors: kind usage at `location`.
const io::PictureFormat& picture_format(const std::string& path, const std::string& location);

/// The origin of drawn parameters in titles: "  random parameters  seed 123"; of dropout without
/// parameters "  seed 123"; empty if nothing is drawn.
std::string text_of_draws(const Plan& plan, const std::string& seed);

/// Errors: kind usage for settings that would have no effect, and for a plot without a known
/// suffix.
void check_pictures(const Request& request);

/// The arrays to draw: those that are `named`, or all for the name "all". If none is named, the
/// attention weights, of each stack of a model, if they exist and `all` is false, else all, with
/// the weights first. Errors: kind usage at `location`, listing the arrays.
std::vector<const NamedArray*> arrays_to_draw(const io::Report& report,
                                              const std::vector<std::string>& named, bool all,
                                              const std::string& location);

/// Draws for the terminal at `descriptor`, where the text will be shown.
std::string terminal_text(const io::Report& report, const std::vector<const NamedArray*>& arrays,
                          io::ColorScale scale, int descriptor);

void write_plot(io::Output& out, const io::Report& report,
                const std::vector<const NamedArray*>& arrays, io::ColorScale scale,
                const io::PictureFormat& format);

/// Where the heat map of a request goes.
int descriptor_of_heatmap(const Request& request);

/// Draws the pictures of a request without showing anything: fills `file`, and returns the text for
/// the terminal. Errors: kinds usage and unsupported for what cannot be drawn; kind io.
std::string draw_pictures(const Request& request, const io::Report& given,
                          std::optional<io::OutputFile>& file);

/// Replaces arrays of one name and several layers by one array with the axis "layer" before the
/// others. `layers` are those of the result; a name that begins with its stack's, as
/// "encoder_queries", has only those up to its deepest. Elements that a layer does not have are
/// NaN: layers may lack an array, or differ in heads and widths. The label of a layer states that
/// it has none, or how many heads it has.
/// Errors: OutOfMemory.
void stack_layers(io::Report& report, const std::vector<std::size_t>& layers);

/// The mask of one attention of a model, or of one of several results, which count as its layers.
struct LayerMask {
    std::string part;  ///< the prefix of its arrays: "encoder_", "decoder_", "cross_" or none
    std::size_t layer = 0;
    std::size_t heads = 1, kv_len = 0;
    std::shared_ptr<const Mask> mask;
    std::size_t batch = 1;
};

/// The masked cells of the arrays of these attentions: of an array of one layer, or stacked along
/// an axis "layer", whose entries are `layers`; any other array is that of the only layer. The
/// arrays have `chosen` heads; empty: all.
io::MaskedOf masked_in_layers(std::vector<LayerMask> attentions, std::vector<std::size_t> layers,
                              std::vector<std::size_t> chosen);

/// The settings and labels of a result, with `flags`, and the plan of its layout.
struct PlannedResult {
    Request request;
    Plan plan;
};
/// Errors: kind input if the head is not a result's, if its layout is malformed or differs from the
/// plan, or if labels do not fit.
PlannedResult plan_of_result(const io::ResultHead& head, Request flags = {});

/// An attention of a model: that of a layer, in one of its stacks.
struct LayerPart {
    std::size_t layer = 0;
    std::string stack = {};  ///< "encoder", "decoder" or "cross", for models with both; else empty
};

/// The settings of a layer's attention in a model's result, and its plan: the operator on the
/// queries, keys and values that the layer makes. Nothing if the head does not describe the layer.
/// Errors: kind input if the description is malformed or differs from the plan.
std::optional<PlannedResult> plan_of_layer(const io::ResultHead& head, const LayerPart& part,
                                           Request request = {});

/// Throws an Error of kind input if the number of labels differs from that of the labelled tokens.
void check_labels(const Request& request, const Plan& plan, const std::string& location);

/// Throws an Error of kind input if an array's shape differs from the plan's.
void check_shape(const Plan& plan, ArrayId array, const Shape& shape, const std::string& location);

}  // namespace attn::cli
