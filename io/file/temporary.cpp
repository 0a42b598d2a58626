#include "io/file/temporary.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "io/file/output.hpp"
#include "io/file/path.hpp"

namespace attn::io {

namespace {

// Signal handlers can only access these. Files beyond their number remain if a signal ends the
// program; attn uses three.
std::array<std::atomic<const char*>, 8> listed_paths{};
std::atomic<const char*> listed_folder{nullptr};
std::atomic<bool> is_ending{false};
static_assert(std::atomic<const char*>::is_always_lock_free);

constexpr std::size_t not_listed = listed_paths.size();

std::size_t list_path(const char* path) {
    for (std::size_t index = 0; index < listed_paths.size(); ++index) {
        const char* nothing = nullptr;
        if (listed_paths[index].compare_exchange_strong(nothing, path)) return index;
    }
    return not_listed;
}

/// Closes a file, of which everything is then on the disk.
void finish_file(int& fd, const std::string& name) {
    int error = error_at_sync(fd);
    if (const int at_close = error_at_close(std::exchange(fd, -1)); error == 0) error = at_close;
    if (error != 0) fail_to_write(name, error);
}

/// Writes to an unfinished file, which the destructor removes unless it was renamed.
class UnfinishedFile : public DescriptorOutput {
public:
    explicit UnfinishedFile(const std::string& path)
        : DescriptorOutput(path), unfinished_(unfinished_name(path)) {
        fd_ = ::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                     new_file_mode);
        if (fd_ < 0) fail_to_write(name_, errno);
    }
    ~UnfinishedFile() override {
        error_at_close(fd_);
        if (!is_renamed_) ::unlink(unfinished_.c_str());
    }

    void finish() {
        flush();
        finish_file(fd_, name_);
    }

    void rename() {
        if (::rename(unfinished_.c_str(), name_.c_str()) != 0) fail_to_write(name_, errno);
        is_renamed_ = true;
    }

private:
    const std::string unfinished_;
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

/// Processes of other containers may have the same id, so the time is part of it.
std::string new_temporary_name() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    char name[64];
    std::snprintf(name, sizeof name, ".attn-%llx-%llx", static_cast<unsigned long long>(::getpid()),
                  static_cast<unsigned long long>(time));
    return name;
}

void list_folder(const char* names) {
    listed_folder = names;
}

void remove_listed_folder() {
    const char* name = listed_folder.exchange(nullptr);
    for (; name != nullptr && *name != '\0'; name += std::strlen(name) + 1)
        if (::unlink(name) != 0) ::rmdir(name);
}

Temporary::~Temporary() {
    if (path_.empty()) return;
    ::unlink(path_.c_str());
    forget();
}

int Temporary::create(const std::string& target, unsigned mode) {
    for (int tries = 100;; --tries) {
        path_ = path_beside(target, new_temporary_name());
        index_ = list_path(path_.c_str());  // a signal may come as soon as the file exists
        const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0) return fd;
        const int error = errno;
        forget();
        errno = error;
        if (error != EEXIST || tries == 0) return -1;
    }
}

void Temporary::adopt(const std::string& path) {
    path_ = path;
    index_ = list_path(path_.c_str());
}

int Temporary::rename(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
    forget();
    return 0;
}

void Temporary::forget() {
    if (index_ != not_listed) listed_paths[index_] = nullptr;
    // A handler that started earlier may still be reading the path, on another thread.
    while (is_ending) ::pause();
    path_.clear();
}

void remove_temporaries() {
    is_ending = true;
    for (const std::atomic<const char*>& path : listed_paths)
        if (const char* const name = path.load()) ::unlink(name);
    remove_listed_folder();
}

void remove_temporaries_at_signals() {
    for (int signal :
         {SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGTERM, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2}) {
        struct sigaction action {};
        ::sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_DFL) continue;
        action.sa_handler = end_by_signal;
        sigfillset(&action.sa_mask);
        ::sigaction(signal, &action, nullptr);
    }
}

void end_by_signal(int signal) {
    remove_temporaries();
    std::signal(signal, SIG_DFL);
    sigset_t this_one;
    sigemptyset(&this_one);
    sigaddset(&this_one, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &this_one, nullptr);
    ::raise(signal);
    std::_Exit(128 + signal);
}

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
    finish_file(fd_, name_);
}

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
