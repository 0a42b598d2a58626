// Common functions for files: descriptors that are already open, complete writes, and error
// messages.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace attn::io {

inline constexpr unsigned new_file_mode = 0666;  ///< reduced by the umask, as usual

struct Written {
    std::size_t bytes;  ///< of the text
    int error;          ///< the error that ended it early, or 0
};

/// Writes the whole text, in several calls if necessary, and waits while a pipe is full. The error
/// is EPIPE if its reader has exited. Once `hurry` is readable, it is EINTR if a pipe takes nothing
/// for a second; -1: no `hurry`.
Written write_all(int fd, std::string_view text, int hurry = -1);

/// Whether an error means that a non-blocking file has no data, or no space, at the moment.
bool is_later(int error);

/// Waits until the file can be read from (POLLIN) or written to (POLLOUT).
void wait_for(int fd, short event);

/// The inherited descriptor that a path leads to: "-", the one named by /dev/stdout, /dev/fd/3,
/// /proc/self/fd/3 or a link to such a name, and standard output or error if the path names the
/// file that is open there. Writing to that file in any other way would overwrite the output of
/// others. Errors: kind io for a descriptor that the program opened itself, and for a regular file
/// that a path names by another program's descriptor.
std::optional<int> inherited_descriptor(const std::string& path);

/// Whether output to both paths would go to one file.
bool is_same_output(const std::string& a, const std::string& b);

/// Closes it; some file systems report only then that the disk is full. 0 or errno. -1: no
/// descriptor.
int error_at_close(int fd);

/// The same for an inherited descriptor, which stays open.
int error_at_end(int fd);

/// Waits until everything written is on the disk, which some system files do not support. 0 or
/// errno.
int error_at_sync(int fd);

/// Errors: kind io, with the system's reason, always.
[[noreturn]] void fail_to_read(const std::string& name, int error);
[[noreturn]] void fail_to_write(const std::string& name, int error);

}  // namespace attn::io
