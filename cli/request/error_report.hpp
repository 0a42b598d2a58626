// A failure in the form that is reported: as an error line or an error record, with an exit code.
#pragma once

#include <string>

namespace attn::cli {

/// The exit code of files that cannot be read or written.
inline constexpr int bad_file = 4;

struct ErrorReport {
    std::string kind;  ///< usage, input, shape, io, unsupported, memory or internal
    std::string where, message;
    int exit_code;
};

/// The failure of the exception that is being handled. In a batch, the error of a missing file
/// suggests no other file.
ErrorReport current_error(bool in_batch = false);

/// Writes its line to standard error and returns its exit code.
int show_error(const ErrorReport& failure);

}  // namespace attn::cli
