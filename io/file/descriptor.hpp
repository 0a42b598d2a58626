// What files of the system have in common: how all of a text is written, and what errors say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn::io {

inline constexpr unsigned new_file_mode = 0666;  ///< less the umask, as every program

struct Written {
    std::size_t bytes;  ///< of the text
    int error;          ///< that ended it early, or 0
};

/// Writes the text, however many calls that takes, and waits where a pipe is full. Throws
/// ClosedPipe where its reader has gone away.
Written write_all(int fd, std::string_view text);

/// Errors: kind io, with the system's reason, always.
[[noreturn]] void fail_to_read(const std::string& name, int error);
[[noreturn]] void fail_to_write(const std::string& name, int error);

}  // namespace attn::io
