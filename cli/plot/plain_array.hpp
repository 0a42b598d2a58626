// An array of another program: what may be known of it by its numbers, and by words beside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/write/report.hpp"

namespace attn::cli {

/// What the axes of an array count, as --axes names them: "layer", "batch", "heads", "q_len", ...
using AxisNames = std::vector<std::string_view>;

/// What is said of an array beside what its file says.
struct Naming {
    AxisNames axes;  ///< of arrays of as many; the others have those of attn's arrays of their name
    std::vector<std::string> tokens, context_tokens;  ///< or empty
};

/// Errors: kind usage, for a name that no axis has and for an axis that is named twice.
AxisNames axes_named(const std::string& list);

/// Of an array whose last axes are "row" or "tokens", and "column": queries and keys, where words
/// for both are given, or where its matrices are weights and square or have a header; else tokens,
/// where words for the rows are given.
void name_axes(NamedArray& array, const Naming& given, const std::vector<std::string>& header);

}  // namespace attn::cli
