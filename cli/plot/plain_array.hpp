// Arrays of other programs: what their elements and the flags imply about their axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/read/input_file.hpp"

namespace attn::cli {

/// What each axis of an array counts, as set by --axes: "layer", "batch", "heads", "q_len", ...
using AxisNames = std::vector<std::string_view>;

/// What flags add to the description of an array in its file.
struct Naming {
    AxisNames axes;  ///< of arrays of this rank; others have those of attn's array with their name
    std::vector<std::string> tokens, context_tokens;  ///< or empty
    io::CsvStyle csv = {};
    std::vector<std::size_t> layers = {};  ///< to draw; empty: all
};

/// Errors: kind usage for an unknown name, an axis named twice, and fewer than 2 or more than 5
/// axes.
AxisNames axes_named(const std::string& list);

/// The axes of an array that its file does not describe: layer, batch and heads, then those of
/// attn's array of its name, else rows and columns. Rows and columns are queries and keys if labels
/// for both are given, or if a CSV file labels them alike; rows are tokens if there is one for
/// each. `has_labels`: the file labels the rows of its only array.
AxisNames plain_axes(const std::string& name, const std::vector<std::size_t>& shape,
                     bool has_labels, const Naming& given, const io::MatrixLabels& found);

}  // namespace attn::cli
