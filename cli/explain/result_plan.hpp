// The plan of a result that was computed before: its sizes, and what it does not say of them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "cli/explain/walk.hpp"
#include "cli/request/request.hpp"
#include "cli/request/result_file.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

struct ResultPlan {
    Plan plan;  ///< of all queries, or of the one that was computed alone
    std::size_t usual_query = 0;
    Unsaid unsaid;
};

/// Of a result whose settings and labels are the request's. `token` is the one query that was
/// computed. Where positions are not known, the plan has neither a causal mask nor a window; its
/// config has them. Errors: kind input, where sizes, labels and arrays do not fit each other.
ResultPlan plan_of_result(const ResultFile& file, const Request& request,
                          std::optional<std::size_t> token);

/// The array of a result, or null.
const Array<double>* array_called(const ResultFile& file, std::string_view name);

/// Whether it is a parameter that lies the other way round than its row says.
bool lies_turned(const Plan& plan, ArrayId id, const Array<double>& values);

/// Whether its two last axes are as long, so that they do not show which way round it lies.
bool is_square(const Plan& plan, ArrayId id);

}  // namespace attn::cli
