// What files of the system have in common: descriptors that are open already, how all of a text is
// written, and what errors say.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace attn::io {

inline constexpr unsigned new_file_mode = 0666;  ///< less the umask, as every program

struct Written {
    std::size_t bytes;  ///< of the text
    int error;          ///< that ended it early, or 0
};

/// Writes the text, however many calls that takes, and waits where a pipe is full. The error is
/// EPIPE where its reader has gone away. Once `hurry` can be read from, it is EINTR where a pipe
/// takes nothing for a second; -1 is none.
Written write_all(int fd, std::string_view text, int hurry = -1);

/// Whether an error says that a file which does not wait has nothing, or no room, for now.
bool is_later(int error);

/// Until the file can be read from (POLLIN) or written to (POLLOUT).
void wait_for(int fd, short event);

/// The descriptor, of those that the program was started with, that a path leads to: "-", the one
/// that /dev/stdout, /dev/fd/3, /proc/self/fd/3 or a link to such a name says, and standard output
/// or error where the path names the file that is open there. What is written to it by any other
/// way is lost among what others write. Errors: kind io for a descriptor that the program opened
/// itself, and for a regular file that a path names by another program's descriptor.
std::optional<int> inherited_descriptor(const std::string& path);

/// Whether what is written to both paths would stand in one file.
bool is_same_output(const std::string& a, const std::string& b);

/// Closes it; some file systems say only then that there was no room. 0 or errno. -1 is none.
int error_at_close(int fd);

/// The same for a descriptor that stays open, because it is not the program's own.
int error_at_end(int fd);

/// Errors: kind io, with the system's reason, always.
[[noreturn]] void fail_to_read(const std::string& name, int error);
[[noreturn]] void fail_to_write(const std::string& name, int error);

}  // namespace attn::io
