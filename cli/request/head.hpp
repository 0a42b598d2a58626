// The members of a result before its arrays: what it answers, and how its arrays are laid out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/request/request.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// Names and JSON values, in written order: schema, id, mode, tokens, context_tokens, config,
/// shapes, layout; those that are absent from the request are left out.
std::vector<std::pair<std::string, std::string>> head_of(const Request& request, const Plan& plan);

/// The sizes of a plan as a JSON object.
std::string shapes_json(const Shapes& shapes);

/// The shapes of the operands that a plan was made from, as a JSON object. Weights have the shape
/// (groups, d_out, d_in), biases (groups, d_out), whichever way they are stored.
std::string operands_json(const OperandShapes& operands);

/// What arrays need to be read without guessing: positions, masks, operands and the axes of every
/// array, as a JSON object.
std::string layout_json(const Plan& plan);

}  // namespace attn::cli
