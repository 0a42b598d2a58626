// `attn compare A B`: how far two results, or two arrays, are apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/difference.hpp"
#include "io/read/csv.hpp"

namespace attn::cli {

struct CompareRequest {
    std::string a, b;  ///< paths, or - for standard input
    Tolerance tolerance;
    std::optional<Dtype> dtype;  ///< empty: as the results say, else float32
    bool json = false;
    io::CsvStyle csv;
};

/// Writes the comparison to standard output; true where every array of each side has a partner
/// within the tolerance whose shape is the same, but for leading axes of length 1. A note says
/// where such axes differ. How files of CSV were read goes to `notes`, which may hold empty
/// strings. Errors: kinds input and io.
bool compare(const CompareRequest& request, std::vector<std::string>& notes);

}  // namespace attn::cli
