// Rebuilds the plan of a result from the config and the operand shapes in its head. The function is
// the same that made the plan before the computation.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/request/request.hpp"
#include "core/plan/plan.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {

/// The plan of the result with this head and the settings of its config. Errors: kind input if the
/// layout is malformed or differs from the plan.
Plan plan_of_result(const io::ResultHead& head, Settings settings, const std::string& location);

/// An attention of a model: that of a layer, in one of its stacks.
struct LayerPart {
    std::size_t layer = 0;
    std::string stack = {};  ///< "encoder", "decoder" or "cross", for models with both; else empty
};

/// The settings of a layer's attention in a model's result, and its plan: the operator on the
/// queries, keys and values that the layer makes. Nothing if the head does not describe the layer.
/// Errors: kind input if the description is malformed or differs from the plan.
struct PlannedLayer {
    Request request;
    Plan plan;
};
std::optional<PlannedLayer> plan_of_layer(const io::ResultHead& head, const LayerPart& part,
                                          const std::string& location, Request flags = {});

/// Throws an Error of kind input if the number of labels differs from that of the labelled tokens.
void check_labels(const Request& request, const Plan& plan, const std::string& location);

/// Throws an Error of kind input if an array's shape differs from the plan's.
void check_shape(const Plan& plan, ArrayId array, const Shape& shape, const std::string& location);

}  // namespace attn::cli
