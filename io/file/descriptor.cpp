// What files of the system have in common; see descriptor.hpp.
#include "io/file/descriptor.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"
#include "io/file/missing_file.hpp"
#include "io/file/output.hpp"

namespace attn::io {

Written write_all(int fd, std::string_view text) {
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
        if (count >= 0) {
            done += static_cast<std::size_t>(count);
            continue;
        }
        const int error = errno;
        if (error == EPIPE) throw ClosedPipe{};
        const bool is_full = error == EAGAIN || error == EWOULDBLOCK;
        if (is_full) {  // a pipe that another program left so
            pollfd room{fd, POLLOUT, 0};
            ::poll(&room, 1, -1);
        } else if (error != EINTR) {
            return {done, error};
        }
    }
    return {done, 0};
}

void fail_to_read(const std::string& name, int error) {
    if (error == ENOENT) throw MissingFile(name);
    throw Error(
        ErrorKind::io, name,
        std::string("cannot be read (") + std::strerror(error) + "); expected a readable file");
}

void fail_to_write(const std::string& name, int error) {
    throw Error(ErrorKind::io, name,
                std::string("cannot be written (") + std::strerror(error) +
                    "); expected a place with room and leave to write");
}

}  // namespace attn::io
