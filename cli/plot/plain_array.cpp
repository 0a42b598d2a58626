#include "cli/plot/plain_array.hpp"

#include <algorithm>
#include <utility>

#include "cli/request/field.hpp"
#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/source.hpp"
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

void name_axes(NamedArray& array, const Naming& given, const io::MatrixLabels& found) {
    const std::vector<std::size_t> shape = io::shape_of(array);
    const std::size_t rank = shape.size();
    AxisNames& axes = array.axes;
    if (rank < 2 || axes[rank - 1] != "column" || find_array(array.name)) return;
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
}

}  // namespace attn::cli
