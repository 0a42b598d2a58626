// What flags choose of the arrays that are drawn: their axes, heads and layers.
#include "cli/plot/plot.hpp"

#include <algorithm>

#include "cli/request/field.hpp"
#include "core/base/error.hpp"
#include "core/base/layout.hpp"
#include "core/base/tensor.hpp"
#include "core/operator/shown_axes.hpp"
#include "io/file/source.hpp"
#include "io/plot/colors.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/write/row_text.hpp"

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
        const auto row = std::ranges::find_if(axis_words, [&](const AxisWord& a) {
            return a.words.find(" " + word + " ") != std::string_view::npos;
        });
        if (word.empty() || row == std::end(axis_words))
            throw Error(ErrorKind::usage, "--axes " + list, "unknown axis \"", io::shortened(word),
                        "\"; expected layer, batch, head, query, key, token, row or column");
        if (std::ranges::count(axes, row->axis) != 0)
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

namespace {

/// The indices of these heads in the arrays that have `count` of them, whose numbers the report
/// may give. Errors: kind usage for a head that it lacks.
std::vector<std::size_t> indices_of(const std::vector<std::size_t>& heads, const io::Report& report,
                                    const NamedArray& array, std::size_t count) {
    const bool has_chosen = has_chosen_heads(report, array);
    std::vector<std::size_t> indices;
    for (std::size_t head : heads) {
        const auto found = std::ranges::find(report.heads, head);
        const std::size_t index =
            has_chosen ? static_cast<std::size_t>(found - report.heads.begin()) : head;
        if (index >= count)
            throw Error(ErrorKind::usage, "--head " + std::to_string(head), array.name,
                        (count == 0   ? " has no heads; expected an array that has some"
                         : has_chosen ? " has the heads " + shape_text(report.heads) +
                                            "; expected one of them"
                                      : " has " + std::to_string(count) + " heads; expected 0 to " +
                                            std::to_string(count - 1)));
        indices.push_back(index);
    }
    return indices;
}

/// The index of layer number `layer` among the array's, which its labels may number.
std::size_t index_of_layer(std::size_t layer, const NamedArray& array) {
    const std::size_t count = io::length_of_axis(array, "layer");
    const std::vector<std::string>& labels = array.layer_labels;
    const std::string number = std::to_string(layer);
    const auto is_numbered = [](const std::string& label) {
        return io::are_digits(label.starts_with("layer ") ? label.substr(6) : label);
    };
    const bool has_numbers = labels.size() == count && std::ranges::all_of(labels, is_numbered);
    const auto is_own = [&](const std::string& label) {
        return label == number || label == "layer " + number;
    };
    std::size_t index = layer;
    if (has_numbers)
        index = static_cast<std::size_t>(std::ranges::find_if(labels, is_own) - labels.begin());
    if (index < count) return index;
    const std::string all = io::comma_list(labels, [](const std::string& label) {
        return label.starts_with("layer ") ? label.substr(sizeof "layer") : label;
    });
    throw Error(ErrorKind::usage, "--layer " + number, array.name,
                has_numbers ? " has the layers " + io::shortened(all) + "; expected one of them"
                            : " has " + std::to_string(count) + " layers; expected 0 to " +
                                  std::to_string(count - 1));
}

}  // namespace

std::vector<const NamedArray*> keep_heads(io::Report& report,
                                          const std::vector<const NamedArray*>& drawn,
                                          const std::vector<std::size_t>& heads) {
    const auto widest = *std::ranges::max_element(drawn, [&](const auto* a, const auto* b) {
        const bool a_has = has_chosen_heads(report, *a), b_has = has_chosen_heads(report, *b);
        return a_has != b_has ? b_has
                              : io::length_of_axis(*a, "heads") < io::length_of_axis(*b, "heads");
    });
    const std::size_t count = io::length_of_axis(*widest, "heads");
    const std::vector<std::size_t> indices = indices_of(heads, report, *widest, count);
    const bool has_chosen = has_chosen_heads(report, *widest);
    const auto is_alike = [&](const NamedArray& array) {
        return io::length_of_axis(array, "heads") == count &&
               has_chosen_heads(report, array) == has_chosen;
    };
    std::vector<const NamedArray*> left;
    for (const NamedArray* array : drawn)
        if (io::length_of_axis(*array, "heads") == 0 || is_alike(*array)) left.push_back(array);
    for (NamedArray& array : report.arrays)
        if (is_alike(array))
            array.values = picked(array.values, io::index_of_axis(array, "heads"), indices);
    report.heads = heads;
    return left;
}

std::vector<std::size_t> keep_layers(io::Report& report, const std::vector<std::size_t>& layers,
                                     const std::string& location) {
    std::vector<std::size_t> kept;
    for (NamedArray& array : report.arrays) {
        const std::size_t axis = io::index_of_axis(array, "layer");
        if (axis == array.axes.size()) continue;
        std::vector<std::size_t> indices;
        std::vector<std::string> labels;
        for (const std::size_t layer : layers) {
            indices.push_back(index_of_layer(layer, array));
            labels.push_back(indices.back() < array.layer_labels.size()
                                 ? array.layer_labels[indices.back()]
                                 : "layer " + std::to_string(layer));
        }
        array.values = picked(array.values, axis, indices);
        array.layer_labels = std::move(labels);
        kept = std::move(indices);
    }
    if (kept.empty()) {
        std::size_t rank = 0;
        for (const NamedArray& array : report.arrays) rank = std::max(rank, array.axes.size());
        const char* const others = rank < 3 ? "head" : rank == 3 ? "query,key" : "head,query,key";
        throw Error(ErrorKind::usage, "--layer " + std::to_string(layers.front()),
                    location + " has no layers; expected --axes layer," + others +
                        " where the first axis counts layers, or a result of a model, or several "
                        "results");
    }
    return kept;
}

}  // namespace attn::cli
