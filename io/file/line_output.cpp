#include "io/file/output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/access.hpp"

namespace attn::io {

LineOutput::LineOutput(const std::string& path, int hurry)
    : name_(path == "-" ? "<stdout>" : path), hurry_(hurry) {
    if (const std::optional<int> open = inherited_descriptor(path)) {
        fd_ = *open;
        find_id();
        if (id_) guard_written(path);
        return;
    }
    is_own_ = true;
    try {
        // The previous holder of the lock may have replaced the file before it released the lock.
        constexpr int max_tries = 10;
        for (int tries = 0; tries == 0 || (id_ && file_id(path) != id_); ++tries) {
            if (tries == max_tries)
                throw Error(ErrorKind::io, name_,
                            "is replaced again and again; expected a file at rest");
            open_own(path);
        }
        if (id_) guard_written(path);
    } catch (...) {
        error_at_close(fd_);
        throw;
    }
}

void LineOutput::find_id() {
    struct stat status {};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0) fail_to_write(name_, errno);
    id_ = file_id(status);
}

void LineOutput::open_own(const std::string& path) {
    error_at_close(std::exchange(fd_, -1));
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, new_file_mode);
    find_id();
    // File systems without locks are not locked. The end of the program unlocks.
    if (id_ && ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        throw Error(ErrorKind::io, name_,
                    "is being written by another attn; expected one at a time");
}

void LineOutput::cut(std::uint64_t byte) const {
    if (!is_own_ || !id_) return;
    const auto offset = static_cast<off_t>(byte);
    if (::ftruncate(fd_, offset) != 0 || ::lseek(fd_, offset, SEEK_SET) != offset)
        fail_to_write(name_, errno);
}

void LineOutput::sync() const {
    if (const int error = error_at_sync(fd_); error != 0) fail_to_write(name_, error);
}

void LineOutput::finish() {
    const int fd = std::exchange(fd_, -1);
    const int error = is_own_ ? error_at_close(fd) : error_at_end(fd);
    if (error != 0) fail_to_write(name_, error);
}

LineOutput::~LineOutput() {
    if (is_own_) error_at_close(fd_);
}

LineOutput& LineOutput::operator<<(std::string_view lines) {
    if (start_) cut(*std::exchange(start_, std::nullopt));
    const Written written = write_all(fd_, lines, id_ ? -1 : hurry_);
    if (written.error == 0) return *this;
    if (written.error == EPIPE) throw ClosedPipe{};
    if (written.error == EINTR) throw GivenUp{};
    remove_torn_line(lines.substr(0, written.bytes));
    fail_to_write(name_, written.error);
}

/// Other programs may append to the same file; if there is anything after the line, nothing is
/// truncated.
void LineOutput::remove_torn_line(std::string_view written) const {
    const int flags = ::fcntl(fd_, F_GETFL);
    if (flags < 0 || (flags & O_APPEND) != 0 || !id_) return;
    const std::size_t torn = written.size() - (written.rfind('\n') + 1);  // npos + 1 is 0
    const off_t end = ::lseek(fd_, 0, SEEK_CUR);
    struct stat status {};
    if (end < 0 || ::fstat(fd_, &status) != 0 || status.st_size != end) return;
    const off_t whole = end - static_cast<off_t>(torn);
    if (::ftruncate(fd_, whole) == 0) ::lseek(fd_, whole, SEEK_SET);
}

}  // namespace attn::io
