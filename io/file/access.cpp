#include "io/file/access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/file/descriptor.hpp"

namespace attn::io {
namespace {

void check_kind(const std::string& path, const struct stat& status, const Access& access) {
    if (S_ISDIR(status.st_mode)) throw Error(ErrorKind::io, path, "is a folder; expected a file");
    if (access.regular_only && !S_ISREG(status.st_mode))
        throw Error(ErrorKind::io, path,
                    "is a pipe or device, which is not waited for here; expected a regular file");
    if (access.written && file_id(status) == access.written) throw WrittenFile(path);
}

}  // namespace

std::optional<FileId> file_id(const struct stat& status) {
    if (!S_ISREG(status.st_mode)) return std::nullopt;
    return FileId{static_cast<std::uint64_t>(status.st_dev),
                  static_cast<std::uint64_t>(status.st_ino)};
}

std::optional<FileId> file_id(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? file_id(status) : std::nullopt;
}

std::optional<FileId> file_id(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 ? file_id(status) : std::nullopt;
}

int open_to_read(const std::string& path, const Access& access) {
    struct stat status {};
    // Opening a device may have side effects; opening a pipe waits for its writer.
    if (access.regular_only && ::stat(path.c_str(), &status) == 0) check_kind(path, status, access);
    const int flags = O_RDONLY | O_CLOEXEC | (access.regular_only ? O_NONBLOCK : 0);
    int fd;
    do {
        fd = ::open(path.c_str(), flags);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) fail_to_read(path, errno);
    try {
        if (::fstat(fd, &status) != 0) fail_to_read(path, errno);
        check_kind(path, status, access);
    } catch (...) {
        ::close(fd);
        throw;
    }
    return fd;
}

}  // namespace attn::io
