// The cost of an answer in a batch: the size of its text, or of its elements in a file, and memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/request/request.hpp"
#include "core/layer/cost.hpp"

namespace attn::cli {

struct AnswerCost {
    std::uint64_t bytes;  ///< approximate size of its elements, as text or in a file
    double memory;        ///< peak bytes, including those
};

/// The whole answer is in memory before it is written.
AnswerCost answer_cost(const Request& request, const Plan& plan, const Cost& cost);

/// The answer of a dry run: sizes, operations and AnswerCost as a line of JSON.
std::string cost_line(const Request& request, const Plan& plan, const Cost& cost);

/// Writes a line of cost to the request's output. Errors: kind usage for another format than JSON,
/// and for pictures.
void write_cost(const Request& request, const std::string& line);

/// Appends a member of a cost line; a number below 2^63 is an integer.
void append_count(std::string& line, std::string_view name, double number);

}  // namespace attn::cli
