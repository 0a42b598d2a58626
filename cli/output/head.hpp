// The members of a result before its arrays: its request, and the layout of its arrays.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/request/request.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// Names and JSON values in the order of output: schema, id, meta, mode, tokens, context_tokens,
/// config, shapes, layout. Members that the request lacks are omitted.
std::vector<std::pair<std::string, std::string>> head_of(const Request& request, const Plan& plan);

/// The schema of an answer: of a result, or of a line of a batch's index if the arrays are
/// elsewhere.
std::string_view schema_of_answer(const Request& request);

/// The sizes of a plan as a JSON object.
std::string shapes_json(const Shapes& shapes);

/// The shapes of the operands that a plan was made from, as a JSON object. Weights have shape
/// (groups, d_out, d_in) and biases (groups, d_out), regardless of how they are stored.
std::string operands_json(const OperandShapes& operands);

/// Everything needed to interpret the arrays without guessing, as a JSON object: positions, masks,
/// operands and the axes of every array.
std::string layout_json(const Plan& plan);

/// The same with other axes: an object with a list of names for each array.
std::string layout_json(const Plan& plan, const std::string& axes);

}  // namespace attn::cli
