#include "cli/plot/plot.hpp"

#include <algorithm>
#include <optional>

#include "cli/request/field.hpp"
#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/source.hpp"
#include "io/plot/colors.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {
namespace {

struct AxisWord {
    std::string_view axis, words;
};
constexpr AxisWord axis_words[] = {{"layer", " layer layers "},
                                   {"batch", " batch batches "},
                                   {"heads", " head heads "},
                                   {"q_len", " q_len query queries q "},
                                   {"kv_len", " kv_len key keys k "},
                                   {"tokens", " token tokens "},
                                   {"row", " row rows "},
                                   {"column", " column columns "}};

/// The array of attn with this name if it can be drawn, or nothing.
std::optional<ArrayId> drawn_array(std::string_view name) {
    const auto array = find_array(io::without_stack(name));
    return array && io::colors_of(*array) != io::ArrayColors::none ? array : std::nullopt;
}

/// The last axes of an array with this name. Those of parameters are unknown, since parameters may
/// be transposed.
std::vector<std::string_view> last_axes_of(std::string_view name) {
    const auto array = drawn_array(name);
    if (!array || array->row().is_parameter()) return {"row", "column"};
    std::vector<std::string_view> axes;
    for (Axis axis : {array->row().axes[2], array->row().axes[3]})
        if (axis != Axis::none) axes.push_back(axis_name(axis));
    return axes;
}

}  // namespace

AxisNames axes_named(const std::string& list) {
    AxisNames axes;
    for (const std::string& word : split_list(list)) {
        const auto row =
            std::find_if(std::begin(axis_words), std::end(axis_words), [&](const AxisWord& a) {
                return a.words.find(" " + word + " ") != std::string_view::npos;
            });
        if (word.empty() || row == std::end(axis_words))
            throw Error(ErrorKind::usage, "--axes " + list,
                        "unknown axis \"" + io::shortened(word) +
                            "\"; expected layer, batch, head, query, key, token, row or column");
        if (std::count(axes.begin(), axes.end(), row->axis) != 0)
            throw Error(ErrorKind::usage, "--axes " + list,
                        word + " appears twice; expected each axis once");
        axes.push_back(row->axis);
    }
    if (axes.size() < 2 || axes.size() > 5)
        throw Error(ErrorKind::usage, "--axes " + list,
                    std::to_string(axes.size()) + " names; expected 2 to 5, one per axis");
    return axes;
}

AxisNames plain_axes(const std::string& name, const std::vector<std::size_t>& shape,
                     bool has_labels, const Naming& given, const io::MatrixLabels& found) {
    const std::size_t rank = shape.size();
    AxisNames axes = last_axes_of(name);
    if (name == "array" && has_labels) axes[0] = "tokens";  // labels of a CSV file
    if (rank < axes.size()) axes.resize(rank);
    const std::size_t before = rank - axes.size();
    const auto array = drawn_array(name);
    const Axis heads = array ? array->row().axes[1] : Axis::heads;
    const bool has_heads = heads != Axis::none && heads != Axis::heads_apart;
    if (before > 1) axes.insert(axes.begin(), {"batch", "heads"});
    if (before > 2) axes.insert(axes.begin(), "layer");
    if (before == 1) axes.insert(axes.begin(), has_heads ? "heads" : "batch");
    if (rank < 2 || axes[rank - 1] != "column" || find_array(name)) return axes;
    const std::size_t rows = shape[rank - 2], columns = shape[rank - 1],
                      labels = given.tokens.size(), key_labels = given.context_tokens.size();
    const bool has_labels_for_both =
        key_labels == 0 ? labels == rows && labels == columns : key_labels == columns;
    if (has_labels_for_both || (!found.rows.empty() && found.rows == found.columns)) {
        axes[rank - 2] = "q_len";
        axes[rank - 1] = "kv_len";
    } else if (labels == rows) {
        axes[rank - 2] = "tokens";
    }
    return axes;
}

}  // namespace attn::cli
