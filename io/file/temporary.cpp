#include "io/file/temporary.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "io/file/path.hpp"

namespace attn::io {
namespace {

// Signal handlers can only access these. Files beyond their number remain if a signal ends the
// program; attn uses three.
std::array<std::atomic<const char*>, 8> listed_paths{};
std::atomic<bool> is_ending{false};
static_assert(std::atomic<const char*>::is_always_lock_free);

constexpr std::size_t not_listed = listed_paths.size();

std::size_t list_path(const char* path) {
    for (std::size_t place = 0; place < listed_paths.size(); ++place) {
        const char* nothing = nullptr;
        if (listed_paths[place].compare_exchange_strong(nothing, path)) return place;
    }
    return not_listed;
}

std::string hex_text(std::uint64_t number) {
    std::array<char, 16> digits{};
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
    return {digits.data(), end};
}

/// Processes of other containers may have the same id, so the time is part of it.
std::string new_name() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    return ".attn-" + hex_text(static_cast<std::uint64_t>(::getpid())) + "-" +
           hex_text(static_cast<std::uint64_t>(time));
}

}  // namespace

Temporary::~Temporary() {
    if (path_.empty()) return;
    ::unlink(path_.c_str());
    forget();
}

int Temporary::create(const std::string& target, unsigned mode) {
    for (int tries = 100;; --tries) {
        path_ = path_beside(target, new_name());
        place_ = list_path(path_.c_str());  // a signal may come as soon as the file exists
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
    place_ = list_path(path_.c_str());
}

int Temporary::rename(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
    forget();
    return 0;
}

void Temporary::forget() {
    if (place_ != not_listed) listed_paths[place_] = nullptr;
    // A handler that started earlier may still be reading the path, on another thread.
    while (is_ending) ::pause();
    path_.clear();
}

void remove_temporaries() {
    is_ending = true;
    for (const std::atomic<const char*>& path : listed_paths)
        if (const char* const name = path.load()) ::unlink(name);
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

}  // namespace attn::io
