// Failures in the form that is reported: as an error line or an error record, with an exit code.
#pragma once

#include <string>

namespace attn::cli {

/// The exit code of files that cannot be read or written.
inline constexpr int bad_file = 4;

struct ErrorReport {
    std::string kind;  ///< usage, input, shape, io, unsupported, memory or internal
    std::string location, message;
    int exit_code;
};

/// The failure of the exception that is being handled. In a batch, the error of a missing file
/// suggests no other file.
ErrorReport current_error(bool in_batch = false);

/// The line of a record that failed; `start` is an object's, up to the member `error`.
std::string error_line(std::string start, const ErrorReport& failure);

/// Writes its line to standard error and returns its exit code.
int show_error(const ErrorReport& failure);

/// Reserves some memory. The first allocation that fails frees it, so that the work in progress can
/// end in order. If a destructor still cannot allocate, the program ends with the error instead of
/// a crash. Call this once, before anything else.
void prepare_for_out_of_memory();

/// Reserves the memory again after it was freed.
void keep_memory_aside() noexcept;

/// Writes the error line to standard error; returns the exit code.
int report_out_of_memory() noexcept;

}  // namespace attn::cli
