// Which conventions reproduce another program's arrays: single changes first, then pairs, then
// triples.
#pragma once

#include "core/check/departures.hpp"
#include "core/check/their_array.hpp"

namespace attn {

/// One convention that differs from the question's.
struct Change {
    const ConventionRow* convention;
    std::string asked, found;  ///< "keep", "drop"
    std::string flag;          ///< "--mask-true drop"; empty: attn has none
};

/// Changes that together reproduce every array to rounding.
struct Match {
    std::vector<Change> changes;
    double ulp = 0;  ///< the largest error, in units in the last place of the arrays' type
};

struct SearchOptions {
    std::size_t max_changes = 3;
    /// Called by one thread at a time: how many candidates of how many of this size are done.
    std::function<void(std::size_t changes, std::size_t done, std::size_t of)> progress;
};

/// All matches with the smallest number of changes, best first: the data cannot tell them apart.
/// Empty: none. The arrays are not empty, and `Evaluator::has` each.
std::vector<Match> search_conventions(const Problem& problem, const std::vector<TheirArray>& arrays,
                                      const SearchOptions& options, ThreadPool& pool);

/// About what it keeps in memory besides the problem, for arrays of so many types.
double bytes_of_search(const Plan& plan, std::size_t types, std::size_t threads);

}  // namespace attn
