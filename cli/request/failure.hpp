// What has gone wrong, as it is shown: one line, one error record, one exit code.
#pragma once

#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

struct Failure {
    std::string kind;  ///< usage, input, shape, io, unsupported, memory or internal
    std::string where, message;
    int exit_code;
};

/// The exception that is being handled, while `request` was worked on.
Failure current_failure(const Request& request);

}  // namespace attn::cli
