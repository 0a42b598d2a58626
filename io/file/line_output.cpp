// Lines that are written as they are made; see line_output.hpp.
#include "io/file/line_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.hpp"
#include "io/file/descriptor.hpp"

namespace attn::io {
namespace {

bool is_regular(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

LineOutput::LineOutput(const std::string& path) : name_(path) {
    if (path == "-") {
        name_ = "<stdout>";
        fd_ = STDOUT_FILENO;
        return;
    }
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, new_file_mode);
    if (fd_ < 0) fail_to_write(name_, errno);
    // Where a file system knows no locks, there is none. The end of the program unlocks.
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK && is_regular(fd_))
        throw Error(ErrorKind::io, name_,
                    "is being written by another attn; expected one at a time");
}

void LineOutput::start_at(std::uint64_t byte) {
    if (fd_ == STDOUT_FILENO || !is_regular(fd_)) return;
    const auto offset = static_cast<off_t>(byte);
    if (::ftruncate(fd_, offset) != 0 || ::lseek(fd_, offset, SEEK_SET) != offset)
        fail_to_write(name_, errno);
}

LineOutput::~LineOutput() {
    if (fd_ > STDOUT_FILENO) ::close(fd_);
}

LineOutput& LineOutput::operator<<(std::string_view lines) {
    const Written written = write_all(fd_, lines);
    if (written.error == 0) return *this;
    remove_torn_line(lines.substr(0, written.bytes));
    fail_to_write(name_, written.error);
}

/// Other programs may write to a file that is open for appending; then nothing is cut.
void LineOutput::remove_torn_line(std::string_view written) const {
    const int flags = ::fcntl(fd_, F_GETFL);
    if (flags < 0 || (flags & O_APPEND) != 0 || !is_regular(fd_)) return;
    const std::size_t torn = written.size() - (written.rfind('\n') + 1);  // npos + 1 is 0
    const off_t end = ::lseek(fd_, 0, SEEK_CUR);
    if (end < 0) return;
    const off_t whole = end - static_cast<off_t>(torn);
    if (::ftruncate(fd_, whole) == 0) ::lseek(fd_, whole, SEEK_SET);
}

}  // namespace attn::io
