// `attn compare A B`: how far two results, or two arrays, differ.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/difference.hpp"
#include "core/base/thread_pool.hpp"
#include "io/read/csv.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {

struct CompareRequest {
    std::string a, b;  ///< paths, or - for standard input
    Tolerance tolerance;
    std::optional<NumberType> dtype;  ///< empty: that of each array, else float32
    bool json = false;
    bool common = false;  ///< only the arrays that both sides have
    io::CsvStyle csv;
};

/// One side of a pair: an array with a shape, or none.
struct ComparedSide {
    bool is_there = false;
    /// Shown in place of the shape: "missing", or "null" if a JSON result states it; of a whole
    /// record also "failed" or "a result".
    std::string absent = "missing";
    std::vector<std::size_t> shape{};
};

struct ComparedPair {
    std::string record;  ///< of a batch: its id, or its number; else empty
    std::string name;
    ComparedSide a, b;
    NumberType type = NumberType::float32;   ///< whose units in the last place are counted
    std::optional<Difference> difference{};  ///< empty if the shapes differ
    std::vector<std::size_t> heads{};        ///< chosen ones of side a, on its axis `heads_axis`
    std::size_t heads_axis = 0;

    bool equal() const { return difference && difference->outside == 0; }
};

/// Compares two results, with a pair for each array. Errors: kind usage for several arrays and one
/// without a name, and if `request.common` leaves none; kinds input and io.
std::vector<ComparedPair> compare_results(const io::ResultView& a, const io::ResultView& b,
                                          const CompareRequest& request, const std::string& record,
                                          ThreadPool& workers, std::vector<std::string>& notes);

/// Writes the comparison to standard output; true if every array of each side has a counterpart
/// within the tolerance with the same shape, except for leading axes of length 1. A note reports
/// such axes. Records of two batches are paired by their ids, or by position; those that failed in
/// both files are not compared. Notes on how CSV files were read, and on how many arrays `common`
/// leaves out, go to `notes`. Errors: kinds input and io; kind usage if `common` leaves none.
bool compare(const CompareRequest& request, std::vector<std::string>& notes);

}  // namespace attn::cli
