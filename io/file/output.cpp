#include "io/file/output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace attn::io {
namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 18;

/// The file behind a symbolic link, so that the link itself survives the rename. Empty with errno
/// if that cannot be determined.
std::string real_target(const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                               &std::free);
    return resolved ? resolved.get() : "";
}

/// Whether `fd` now has the access list of the file at `path`, or no list if that has none.
bool copy_access_list([[maybe_unused]] const std::string& path, [[maybe_unused]] int fd) {
#ifdef __linux__
    constexpr const char* list = "system.posix_acl_access";
    std::array<char, 4096> entries{};
    const ssize_t size = ::getxattr(path.c_str(), list, entries.data(), entries.size());
    if (size > 0)
        return ::fsetxattr(fd, list, entries.data(), static_cast<std::size_t>(size), 0) == 0;
    ::fremovexattr(fd, list);  // inherited from the folder by new files
    return errno != ERANGE;
#else
    return true;
#endif
}

/// Restricts `fd` to those who may use the file at `path`. If the group or the access list cannot
/// be set, the group gets the permissions of others.
void copy_access(const std::string& path, const struct stat& old, int fd) {
    unsigned mode = old.st_mode & 0777U;
    struct stat made {};
    const bool is_known = ::fstat(fd, &made) == 0;
    const bool is_same = is_known && made.st_uid == old.st_uid && made.st_gid == old.st_gid;
    const bool has_group = is_same || ::fchown(fd, old.st_uid, old.st_gid) == 0 ||
                           ::fchown(fd, made.st_uid, old.st_gid) == 0;
    if (!has_group || !copy_access_list(path, fd)) mode &= 0707U | (mode & 07U) << 3;
    // On a file system without modes the new file keeps its mode.
    static_cast<void>(::fchmod(fd, static_cast<mode_t>(mode)) == 0);
}

/// The bytes after the last end of a line.
std::size_t torn_bytes(std::string_view written) {
    return written.size() - (written.rfind('\n') + 1);  // npos + 1 is 0
}

}  // namespace

DescriptorOutput& DescriptorOutput::operator<<(std::string_view text) {
    if (buffer_.size() + text.size() >= buffer_size) flush();
    if (text.size() >= buffer_size)
        write(text);
    else
        buffer_ += text;
    return *this;
}

void DescriptorOutput::flush() {
    write(buffer_);
    buffer_.clear();
}

void DescriptorOutput::write(std::string_view text) {
    const Written written = write_all(fd_, text);
    if (written.error == EPIPE) throw ClosedPipe{};
    if (written.error == 0) return;
    torn_ = torn_bytes(text.substr(0, written.bytes));
    fail_to_write(name_, written.error);
}

OutputFile::OutputFile(const std::string& path)
    : DescriptorOutput(path == "-" ? "<stdout>" : path) {
    if (const std::optional<int> open = inherited_descriptor(path)) {
        fd_ = *open;
        return;
    }
    is_own_ = true;
    struct stat old {};
    const bool exists = ::stat(path.c_str(), &old) == 0;
    if (!exists && errno != ENOENT) fail_to_write(name_, errno);
    struct stat link {};
    if (!exists && ::lstat(path.c_str(), &link) == 0)
        throw Error(ErrorKind::io, name_, "is a broken symbolic link; expected a file to write");
    if (exists && S_ISDIR(old.st_mode))
        throw Error(ErrorKind::io, name_, "is a folder; expected a file to write, or ", name_,
                    "/ for a folder of npy files");
    if (exists && !S_ISREG(old.st_mode)) {
        fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (fd_ < 0) fail_to_write(name_, errno);
        return;
    }
    if (exists && ::access(path.c_str(), W_OK) != 0) fail_to_write(name_, errno);
    guard_written(path);
    target_ = exists ? real_target(path) : path;
    if (target_.empty()) fail_to_write(name_, errno);
    replaces_ = exists && old.st_size != 0;
    // Only the owner can read a replacement before its permissions are set.
    fd_ = temporary_.create(target_, exists ? old.st_mode & 0600U : new_file_mode);
    if (fd_ < 0 && exists) fail_to_rename(errno);
    if (fd_ < 0) fail_to_write(name_, errno);
    if (exists) copy_access(target_, old, fd_);
}

OutputFile::~OutputFile() {
    if (is_own_) close();
}

void OutputFile::finish() {
    flush();
    int error = replaces_ ? error_at_sync(fd_) : 0;
    if (error == 0) error = close();
    if (error != 0) fail_to_write(name_, error);
}

bool OutputFile::keep_lines() {
    if (!torn_ || is_in_place()) return false;
    const off_t whole = ::lseek(fd_, 0, SEEK_CUR) - static_cast<off_t>(*torn_);
    return whole > 0 && ::ftruncate(fd_, whole) == 0 && error_at_sync(fd_) == 0 && close() == 0;
}

void OutputFile::commit() {
    if (is_in_place()) return;
    require_unread(target_);  // it may have been read since it was opened
    if (const int error = temporary_.rename(target_); error != 0) fail_to_rename(error);
}

/// 0 or errno. Call once.
int OutputFile::close() {
    const int fd = std::exchange(fd_, -1);
    return is_own_ ? error_at_close(fd) : error_at_end(fd);
}

void OutputFile::fail_to_rename(int error) const {
    throw Error(ErrorKind::io, name_, "cannot be renamed to its name (", std::strerror(error),
                "); expected a folder where files may be made and renamed, or the result on "
                "standard output, > FILE");
}

void show(std::string_view text, int descriptor) {
    const Written written = write_all(descriptor, text);
    const int error = written.error == 0 ? error_at_end(descriptor) : written.error;
    if (error != 0 && error != EPIPE)
        fail_to_write(descriptor == STDOUT_FILENO ? "<stdout>" : "<stderr>", error);
}

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
    const off_t end = ::lseek(fd_, 0, SEEK_CUR);
    struct stat status {};
    if (end < 0 || ::fstat(fd_, &status) != 0 || status.st_size != end) return;
    const off_t whole = end - static_cast<off_t>(torn_bytes(written));
    if (::ftruncate(fd_, whole) == 0) ::lseek(fd_, whole, SEEK_SET);
}

}  // namespace attn::io
