// Writes a result, its pictures and its parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/output_name.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/result.hpp"
#include "io/file/output.hpp"
#include "io/plot/heat_map.hpp"

namespace attn::cli {

/// Checks the request's format, which was given, against the name of its file. Errors: kind usage
/// if the name specifies another format.
void check_promise(const Request& request, const OutputName& name);

/// How an answer is written.
struct OutputPlan {
    const io::OutputFormat* format;
    std::vector<std::string> emit;  ///< as in the answer's config
    /// `emit` and the arrays that are only drawn, if the format holds one array.
    std::optional<std::vector<std::string>> computed;
};

/// Determines the format from the flag or the file's suffix, and the arrays to emit if the format
/// holds one, before any array is read. Errors: kind usage for settings that the format would
/// ignore, and for names that specify no format or another one.
OutputPlan plan_output(Request request);

/// The request with the plan's format and arrays.
Request with_output(Request request, const OutputPlan& output);

/// Whether arrays are written while they are computed: if the format allows it and there are no
/// pictures.
bool takes_streams(const Request& request);

/// Writes the result in the request's format.
void write_result(io::Output& out, const Request& request, const Plan& plan, Result result,
                  ThreadPool& workers);

/// The start of a result's JSON, up to its arrays.
std::string head_text(const Request& request, const Plan& plan);

/// Writes the rest of the JSON after the head, on one line.
void write_behind_head(io::Output& out, const Request& request,
                       const std::vector<NamedArray>& arrays, ThreadPool& workers);

/// The cost of an answer in a batch as a line of JSON; see AnswerCost.
std::string cost_line(const Request& request, const Plan& plan, const Cost& cost);

/// Writes the result to the request's output, the parameters to the file of --save-weights, and the
/// requested pictures. Each file is written completely or not at all.
void write_outputs(Answer answer, ThreadPool& workers);

}  // namespace attn::cli
