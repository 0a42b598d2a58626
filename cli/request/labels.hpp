// Words beside numbers: the labels of queries and keys that a request or a result has.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/plan/modes.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// One label a query and one a key, cached keys included; empty where there are none.
struct AxisLabels {
    std::vector<std::string> queries, keys;
};

/// How many there are to be named.
struct Lengths {
    std::size_t queries = 0, keys = 0;  ///< all queries, also where one is computed
};

/// `tokens` name the queries; `context_tokens` the keys that are no cached ones, and else `tokens`
/// do, but in cross attention, and in sdpa where there are as many. Cached keys are "cached 0" and
/// so on. Labels that do not fit are left out. `mode` is null where it is not known.
AxisLabels axis_labels(const ModeRow* mode, const std::vector<std::string>& tokens,
                       const std::vector<std::string>& context_tokens, const Lengths& lengths);

AxisLabels axis_labels(const Request& request, const Plan& plan);

}  // namespace attn::cli
