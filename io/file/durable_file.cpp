#include "io/file/durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/file/access.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/path.hpp"

namespace attn::io {
namespace {

/// Writes to an unfinished file, which the destructor removes unless it was renamed.
class UnfinishedFile : public Output {
public:
    explicit UnfinishedFile(const std::string& path) : path_(path), name_(unfinished_name(path)) {
        fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                     new_file_mode);
        if (fd_ < 0) fail_to_write(path_, errno);
    }
    ~UnfinishedFile() override {
        error_at_close(fd_);
        if (!is_renamed_) ::unlink(name_.c_str());
    }

    UnfinishedFile& operator<<(std::string_view text) override {
        constexpr std::size_t buffer_size = std::size_t{1} << 18;
        if (buffer_.size() + text.size() >= buffer_size) flush();
        if (text.size() >= buffer_size)
            put(text);
        else
            buffer_ += text;
        return *this;
    }

    /// Everything is on the disk after it.
    void finish() {
        flush();
        if (const int error = error_at_sync(fd_); error != 0) fail_to_write(path_, error);
        if (const int error = error_at_close(std::exchange(fd_, -1)); error != 0)
            fail_to_write(path_, error);
    }

    void rename() {
        if (::rename(name_.c_str(), path_.c_str()) != 0) fail_to_write(path_, errno);
        is_renamed_ = true;
    }

private:
    void put(std::string_view text) const {
        if (const Written written = write_all(fd_, text); written.error != 0)
            fail_to_write(path_, written.error);
    }
    void flush() {
        put(buffer_);
        buffer_.clear();
    }

    std::string path_, name_, buffer_;
    int fd_ = -1;
    bool is_renamed_ = false;
};

/// Makes changes to a folder's names last through a failure of power.
void sync_folder(const std::string& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;  // some systems do not open folders; their names are as durable as they are
    error_at_sync(fd);
    error_at_close(fd);
}

}  // namespace

std::string unfinished_name(const std::string& path) {
    return path_beside(path, ".attn-" + last_part(path));
}

void write_durably(const std::string& path, FunctionRef<void(Output&)> write) {
    require_unread(path);
    UnfinishedFile file(path);
    write(file);
    file.finish();
    file.rename();
    const std::size_t slash = path.rfind('/');
    sync_folder(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

}  // namespace attn::io
