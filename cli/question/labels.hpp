// The labels of queries and keys in a request or a result.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/plan/modes.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// One label per query and one per key, cached keys included; empty if there are none.
struct AxisLabels {
    std::vector<std::string> queries, keys;
};

/// The numbers of queries and keys to label.
struct Lengths {
    std::size_t queries = 0, keys = 0;  ///< all queries, even if only one is computed
};

/// `tokens` name the queries. `context_tokens` name the keys that are not cached. Without
/// `context_tokens`, `tokens` also name those keys, except in cross attention; in sdpa only if
/// their number equals that of all keys. Cached keys are named "cached 0" and so on. Labels that do
/// not fit are omitted. `mode` is null if it is not known.
AxisLabels axis_labels(const ModeRow* mode, const std::vector<std::string>& tokens,
                       const std::vector<std::string>& context_tokens, const Lengths& lengths);

AxisLabels axis_labels(const Request& request, const Plan& plan);

}  // namespace attn::cli
