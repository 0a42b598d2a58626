// Where results go; see output_file.hpp.
#include "io/file/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/descriptor.hpp"

namespace attn::io {
namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 18;

/// The file behind a symbolic link, so that the link itself survives the rename.
std::string real_target(const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                               &std::free);
    return resolved ? resolved.get() : path;
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : name_(path) {
    if (path == "-") {
        name_ = "<stdout>";
        fd_ = STDOUT_FILENO;
        return;
    }
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    struct stat link {};
    if (!exists && ::lstat(path.c_str(), &link) == 0)
        throw Error(ErrorKind::io, name_, "is a broken symbolic link; expected a file to write");
    if (exists && S_ISDIR(status.st_mode))
        throw Error(ErrorKind::io, name_, "is a folder; expected a file to write");
    if (exists && !S_ISREG(status.st_mode)) {
        fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (fd_ < 0) fail_to_write(name_, errno);
        return;
    }
    if (exists && ::access(path.c_str(), W_OK) != 0) fail_to_write(name_, errno);
    target_ = real_target(path);
    temporary_ = target_ + ".tmp" + std::to_string(::getpid());
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, new_file_mode);
    if (fd_ < 0) {
        const int error = errno;
        temporary_.clear();
        fail_to_write(name_, error);
    }
    // Best effort: on a file system without modes the new file's own mode has to do.
    if (exists) static_cast<void>(::fchmod(fd_, status.st_mode & 07777) == 0);
}

OutputFile::~OutputFile() {
    if (fd_ > STDOUT_FILENO) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

OutputFile& OutputFile::operator<<(std::string_view text) {
    if (buffer_.size() + text.size() >= buffer_size) flush();
    if (text.size() >= buffer_size)
        write(text);
    else
        buffer_ += text;
    return *this;
}

void OutputFile::commit() {
    flush();
    if (fd_ > STDOUT_FILENO) {
        const int fd = std::exchange(fd_, -1);
        if (::close(fd) != 0) fail_to_write(name_, errno);
    }
    if (temporary_.empty()) return;
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_to_write(name_, errno);
    temporary_.clear();
}

void OutputFile::flush() {
    write(buffer_);
    buffer_.clear();
}

void OutputFile::write(std::string_view text) const {
    if (const Written written = write_all(fd_, text); written.error != 0)
        fail_to_write(name_, written.error);
}

}  // namespace attn::io
