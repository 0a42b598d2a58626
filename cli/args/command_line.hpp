// argv to what is asked for.
#pragma once

#include <optional>
#include <string>

#include "cli/batch/batch.hpp"
#include "cli/compare/compare.hpp"
#include "cli/explain/explain.hpp"
#include "cli/plot/plot.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

struct CommandLine {
    Request request;
    std::optional<CompareRequest> compare;  ///< instead of the request
    std::optional<BatchRequest> batch;      ///< the same
    std::optional<PlotRequest> plot;        ///< the same
    std::optional<ExplainRequest> explain;  ///< of the request, instead of its answer
    std::string message;                    ///< text to print instead of computing: help or version
    int exit_code = 0;                      ///< beside a message
};

/// Help or the like instead of a computation.
CommandLine message_only(std::string message, int exit_code);

/// Reads argv. Errors: kind usage.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace attn::cli
