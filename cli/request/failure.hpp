// What has gone wrong, as it is shown: one line, one error record, one exit code.
#pragma once

#include <string>

namespace attn::cli {

struct Failure {
    std::string kind;  ///< usage, input, shape, io, unsupported, memory or internal
    std::string where, message;
    int exit_code;
};

/// The exception that is being handled. In a batch nothing is looked for in place of a missing
/// file.
Failure current_failure(bool in_batch = false);

}  // namespace attn::cli
