// `attn compare A B`: how far two results, or two arrays, differ.
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
    std::optional<Precision> dtype;  ///< empty: that of each array, else float32
    bool json = false;
    bool common = false;  ///< only the arrays that both sides have
    io::CsvStyle csv;
};

/// Writes the comparison to standard output; true if every array of each side has a counterpart
/// within the tolerance with the same shape, except for leading axes of length 1. A note reports
/// such axes. Records of two batches are paired by their ids, or by position; those that failed in
/// both files are not compared. Notes on how CSV files were read, and on how many arrays `common`
/// leaves out, go to `notes`, which may hold empty strings. Errors: kinds input and io; kind usage
/// if `common` leaves none.
bool compare(const CompareRequest& request, std::vector<std::string>& notes);

}  // namespace attn::cli
