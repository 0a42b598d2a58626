#include "io/file/access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "io/file/descriptor.hpp"

namespace attn::io {
namespace {

void check_kind(const std::string& path, const struct stat& status, const Access& access) {
    if (S_ISDIR(status.st_mode)) throw Error(ErrorKind::io, path, "is a folder; expected a file");
    if (access.regular_only && !S_ISREG(status.st_mode))
        throw Error(ErrorKind::io, path,
                    "is a pipe or device, which is not waited for here; expected a regular file");
}

/// The files of one run of the program. Both are paths, which are looked up again: the number of a
/// file that was removed may belong to a new one.
struct GuardedFiles {
    std::mutex mutex;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> read;
    std::vector<std::string> written;
};
std::unique_ptr<GuardedFiles> guarded;

std::optional<FileId> file_at(const std::string& path, int standard) {
    return path == "-" ? file_id(standard) : file_id(path);
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

FileGuard::FileGuard() {
    guarded = std::make_unique<GuardedFiles>();
}

FileGuard::~FileGuard() {
    guarded.reset();
}

void guard_read(const std::string& path, const std::optional<FileId>& file) {
    if (!guarded || !file) return;
    const std::lock_guard lock(guarded->mutex);
    guarded->read.insert_or_assign({file->device, file->number}, path);
    for (const std::string& output : guarded->written)
        if (file_at(output, STDOUT_FILENO) == file) throw WrittenFile(path == "-" ? output : path);
}

void guard_read(const std::string& path) {
    guard_read(path, file_at(path, STDIN_FILENO));
}

void require_unread(const std::string& path) {
    const std::optional<FileId> file = guarded ? file_at(path, STDOUT_FILENO) : std::nullopt;
    if (!file) return;
    const std::lock_guard lock(guarded->mutex);
    const auto read = guarded->read.find({file->device, file->number});
    if (read != guarded->read.end() && file_at(read->second, STDIN_FILENO) == file)
        throw WrittenFile(path == "-" ? "<stdout>" : path);
}

void guard_written(const std::string& path) {
    require_unread(path);
    if (!guarded) return;
    const std::lock_guard lock(guarded->mutex);
    std::vector<std::string>& written = guarded->written;
    if (std::find(written.begin(), written.end(), path) == written.end()) written.push_back(path);
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
        if (!access.is_own_output) guard_read(path, file_id(status));
    } catch (...) {
        ::close(fd);
        throw;
    }
    return fd;
}

}  // namespace attn::io
