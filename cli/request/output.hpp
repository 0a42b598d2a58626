// Turns a result into what is written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/request/output_name.hpp"
#include "cli/request/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/result.hpp"
#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::cli {

/// Holds the request's format, which was given, against the name of the file that it is written
/// to. Errors: kind usage, where the name promises another.
void check_promise(const Request& request, const OutputName& name);

/// How an answer is written.
struct OutputPlan {
    const io::OutputFormat* format;
    std::vector<std::string> emit;  ///< as the answer's config has it
    /// With the arrays that are only drawn, where the format holds one array.
    std::optional<std::vector<std::string>> computed;
};

/// Decides the output's format by the flag or the file's suffix, and what is emitted where a format
/// holds one array, before any array is read. Errors: kind usage, for settings that the format
/// would ignore and names that promise none, or another.
OutputPlan plan_output(Request request);

/// The request with the plan's format and arrays.
Request with_output(Request request, const OutputPlan& output);

/// Whether the request's format takes arrays while they are computed.
bool takes_streams(const Request& request);

/// The result in the request's format.
void write_result(io::Output& out, const Request& request, const Plan& plan, Result result,
                  ThreadPool& workers);

/// What the JSON of a result starts with: all of it up to its arrays.
std::string head_text(const Request& request, const Plan& plan);

/// The rest of it, on one line.
void write_behind_head(io::Output& out, const Request& request,
                       const std::vector<NamedArray>& arrays, ThreadPool& workers);

/// What an answer of a batch costs as a line of JSON, see AnswerCost.
std::string cost_line(const Request& request, const Plan& plan);

/// Writes the result to the request's output, the parameters where --save-weights says, and the
/// pictures that are asked for; each file whole or not at all.
void write_outputs(Answer answer, ThreadPool& workers);

}  // namespace attn::cli
