#include "io/file/shared_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/file/descriptor.hpp"

namespace attn::io {

SharedFile::SharedFile(const std::string& unfinished, std::string name) : name_(std::move(name)) {
    temporary_.adopt(unfinished);
    fd_ = ::open(unfinished.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail_to_write(name_, errno);
}

SharedFile::~SharedFile() {
    if (fd_ >= 0) ::close(fd_);
}

void SharedFile::write(std::uint64_t offset, std::string_view bytes) const {
    while (!bytes.empty()) {
        const ssize_t done = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail_to_write(name_, errno);
        offset += static_cast<std::uint64_t>(done);
        bytes.remove_prefix(static_cast<std::size_t>(done));
    }
}

void SharedFile::finish() {
    int error = error_at_sync(fd_);
    if (const int at_close = error_at_close(std::exchange(fd_, -1)); error == 0) error = at_close;
    if (error != 0) fail_to_write(name_, error);
}

}  // namespace attn::io
