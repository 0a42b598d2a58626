#include "io/file/access.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

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

namespace fs = std::filesystem;

constexpr int max_links = 40;  // as many as Linux follows

/// 3 of "/dev/fd/3" and "/proc/self/fd/3"; -1 of other names.
int number_in(const fs::path& name) {
    if (name.parent_path().filename() != "fd") return -1;
    return number_of_text<int>(name.filename().native()).value_or(-1);
}

bool is_open_at(int fd, const struct stat& file) {
    struct stat open {};
    return ::fstat(fd, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino;
}

bool is_writable(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

bool is_of_a_process(const fs::path& name) {
    std::error_code ignored;
    return fs::canonical(name.parent_path(), ignored).string().starts_with("/proc/");
}

constexpr int patience = 1000;  // milliseconds

/// Whether there is space, or an error that writing reports, before `hurry` ends the wait.
bool has_room(int fd, int hurry) {
    std::array<pollfd, 2> files{{{fd, POLLOUT, 0}, {hurry, POLLIN, 0}}};
    while (::poll(files.data(), files.size(), -1) < 0 && errno == EINTR) {
    }
    if (files[0].revents != 0 || files[1].revents == 0) return true;
    int ready;
    do {
        ready = ::poll(files.data(), 1, patience);
    } while (ready < 0 && errno == EINTR);
    return ready != 0;
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
    if (std::ranges::find(written, path) == written.end()) written.push_back(path);
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

Written write_all(int fd, std::string_view text, int hurry) {
    std::size_t done = 0;
    while (done < text.size()) {
        if (hurry >= 0 && !has_room(fd, hurry)) return {done, EINTR};
        // A pipe with space has space for this much; a larger write would block.
        const std::size_t most = hurry >= 0 ? std::size_t{PIPE_BUF} : text.size();
        const ssize_t count = ::write(fd, text.data() + done, std::min(most, text.size() - done));
        if (count == 0) return {done, EIO};
        if (count > 0) {
            done += static_cast<std::size_t>(count);
            continue;
        }
        const int error = errno;
        if (is_later(error))
            wait_for(fd, POLLOUT);
        else if (error != EINTR)
            return {done, error};
    }
    return {done, 0};
}

std::optional<int> inherited_descriptor(const std::string& path) {
    if (path == "-") return STDOUT_FILENO;
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) return {};
    std::error_code is_no_link;
    fs::path name = path;
    for (int links = 0; links < max_links && !is_no_link; ++links) {
        if (const int fd = number_in(name); fd >= 0 && is_open_at(fd, file)) {
            if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) fail_to_write(path, EBADF);
            return fd;
        } else if (fd >= 0 && S_ISREG(file.st_mode) && is_of_a_process(name)) {
            throw Error(ErrorKind::io, path,
                        "is a file that another program has open; expected its own name, or a "
                        "descriptor of this one, as /dev/fd/1");
        }
        name = name.parent_path() / fs::read_symlink(name, is_no_link);
    }
    for (int fd : {STDOUT_FILENO, STDERR_FILENO})
        if (is_open_at(fd, file) && is_writable(fd)) return fd;
    return {};
}

bool is_same_output(const std::string& a, const std::string& b) {
    const std::optional<int> open = inherited_descriptor(a);
    return (open && open == inherited_descriptor(b)) ||
           (a != "-" && b != "-" && is_same_file(a, b));
}

int error_at_close(int fd) {
    // If a signal interrupts it, the descriptor is closed nevertheless.
    return fd < 0 || ::close(fd) == 0 || errno == EINTR ? 0 : errno;
}

int error_at_end(int fd) {
    return error_at_close(::dup(fd));
}

bool is_later(int error) {
    return error == EAGAIN || error == EWOULDBLOCK;
}

void wait_for(int fd, short event) {
    pollfd file{fd, event, 0};
    ::poll(&file, 1, -1);
}

int error_at_sync(int fd) {
    while (::fsync(fd) != 0)
        if (errno != EINTR) return errno == EINVAL || errno == ENOTSUP ? 0 : errno;
    return 0;
}

void fail_to_read(const std::string& name, int error) {
    if (error == ENOENT) throw MissingFile(name);
    throw Error(ErrorKind::io, name, "cannot be read (", std::strerror(error),
                "); expected a readable file");
}

void fail_to_write(const std::string& name, int error) {
    const std::string folder = std::filesystem::path(name).parent_path().string();
    if (error == ENOENT && !folder.empty() && !is_folder(folder))
        throw Error(ErrorKind::io, name, "folder ", one_line(shortened(folder)),
                    " does not exist; expected an existing folder (mkdir -p creates it)");
    throw Error(ErrorKind::io, name, "cannot be written (", std::strerror(error),
                "); expected a writable location with enough space");
}

}  // namespace attn::io
