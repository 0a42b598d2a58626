// The plan of a result that attn wrote: made again from the config and the operands' shapes in its
// head, by the function that made it before the computation.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/request/request.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// Whether the head of a file describes the layout of its arrays; else they are plain arrays.
bool has_layout(const nlohmann::json& head);

/// `flags` with the mode, settings and labels of a result's head; flags keep their precision and
/// token. `location` is the file in errors. Errors: kind input, for a head that no result has.
Request request_of_result(const nlohmann::json& head, const std::string& location,
                          Request flags = {});

/// The plan of the result with this head and the settings of its config. Errors: kind input, where
/// the layout is malformed or differs from what the plan says.
Plan plan_of_result(const nlohmann::json& head, Settings settings, const std::string& location,
                    const PlanOptions& options = {});

/// Throws an Error of kind input where a list of labels has another length than what it labels.
void check_labels(const Request& request, const Plan& plan, const std::string& location);

/// Throws an Error of kind input where an array's shape is not that of the plan.
void check_shape(const Plan& plan, ArrayId array, const Shape& shape, const std::string& location);

}  // namespace attn::cli
