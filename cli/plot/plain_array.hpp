// Arrays of other programs: what their elements and the flags imply about their axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/read/input_file.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// What each axis of an array counts, as set by --axes: "layer", "batch", "heads", "q_len", ...
using AxisNames = std::vector<std::string_view>;

/// What flags add to the description of an array in its file.
struct Naming {
    AxisNames axes;  ///< of arrays of this rank; others have those of attn's array with their name
    std::vector<std::string> tokens, context_tokens;  ///< or empty
    io::CsvStyle csv = {};
};

/// Errors: kind usage for an unknown name, an axis named twice, and fewer than 2 or more than 5
/// axes.
AxisNames axes_named(const std::string& list);

/// Names the last axes of an array that ends in "row" and "column": queries and keys if labels for
/// both are given, or if a CSV file labels rows and columns alike; tokens if there is one for each
/// row.
void name_axes(NamedArray& array, const Naming& given, const io::MatrixLabels& found);

}  // namespace attn::cli
