// The arrays of two results, paired and compared.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare/compare.hpp"
#include "core/base/difference.hpp"
#include "core/base/thread_pool.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {

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
    Precision type = Precision::float32;     ///< whose units in the last place are counted
    std::optional<Difference> difference{};  ///< empty if the shapes differ
    std::vector<std::size_t> heads{};        ///< chosen ones of side a, on its axis `heads_axis`
    std::size_t heads_axis = 0;

    bool equal() const { return difference && difference->outside == 0; }
};

/// Compares two results and appends a pair for each array. Errors: kind usage for several arrays
/// and one without a name, and if `request.common` leaves none; kinds input and io.
void compare_results(const io::ResultView& a, const io::ResultView& b,
                     const CompareRequest& request, const std::string& record, ThreadPool& workers,
                     std::vector<ComparedPair>& pairs, std::vector<std::string>& notes);

/// A table with a line per array. `summary`: the text below it, or empty.
std::string table_of(const std::vector<ComparedPair>& pairs, const std::string& summary);

std::string json_of(const std::vector<ComparedPair>& pairs, const Tolerance& tolerance, bool equal);

}  // namespace attn::cli
