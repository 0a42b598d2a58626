// A result as the writers take it, and writing it in the request's format.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/result.hpp"
#include "core/plan/plan.hpp"
#include "io/file/output.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// If the request's format holds one array, the one to write comes first.
io::Report make_report(const Request& request, const Plan& plan, Result result,
                       ThreadPool& workers);

/// Completes the report with what the request's format needs besides the arrays. Returns notes on
/// saturated numbers, to be shown when the output is complete. Errors: kind input for NaN that is
/// to be stored as an integer.
std::vector<std::string> prepare_to_write(const Request& request, io::Report& report);

/// Writes the report in the request's format; nothing if it is `none`.
void write_report(io::Output& out, const Request& request, const io::Report& report);

/// The start of a result's JSON, up to its arrays.
std::string head_text(const Request& request, const Plan& plan);
/// The start of a result's JSON with these members.
std::string head_text(std::vector<std::pair<std::string, std::string>> head);

/// Writes the rest of the JSON after the head, on one line.
void write_after_head(io::Output& out, const Request& request,
                      const std::vector<NamedArray>& arrays, ThreadPool& workers);

}  // namespace attn::cli
