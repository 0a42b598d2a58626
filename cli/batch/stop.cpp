#include "cli/batch/records.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include "io/file/temporary.hpp"

namespace attn::cli {
namespace {

constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};

// The signal handler accesses only these objects, which are all async-signal-safe.
std::atomic<bool> is_wanted{false};
std::atomic<int> came{0};
std::array<int, 2> wake{-1, -1}, signalled{-1, -1};
static_assert(std::atomic<int>::is_always_lock_free);

void wake_up(const std::array<int, 2>& pipe) {
    is_wanted.store(true);
    const char byte = 0;
    // A full pipe also wakes the reader.
    [[maybe_unused]] const ssize_t written = ::write(pipe[1], &byte, 1);
}

void take_note(int signal) {
    if (came.exchange(signal) != 0) io::end_by_signal(signal);  // a second signal does not wait
    const int error = errno;                                    // of the interrupted call
    wake_up(wake);
    wake_up(signalled);
    errno = error;
}

void open_pipe(std::array<int, 2>& pipe) {
    if (::pipe(pipe.data()) != 0) return;
    for (int file : pipe) {
        ::fcntl(file, F_SETFD, FD_CLOEXEC);
        ::fcntl(file, F_SETFL, O_NONBLOCK);
    }
}

}  // namespace

Stop::Stop() {
    is_wanted = false;
    came = 0;
    for (auto* pipe : {&wake, &signalled}) open_pipe(*pipe);
    for (std::size_t i = 0; i < signals.size(); ++i) {
        ::sigaction(signals[i], nullptr, &before_[i]);
        if (before_[i].sa_handler == SIG_IGN) continue;  // as under nohup and in background jobs
        struct sigaction action {};
        action.sa_handler = take_note;
        sigemptyset(&action.sa_mask);
        ::sigaction(signals[i], &action, nullptr);
    }
}

Stop::~Stop() {
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
    for (auto* pipe : {&wake, &signalled})
        for (int& file : *pipe) ::close(std::exchange(file, -1));
}

bool Stop::wanted() const {
    return is_wanted.load(std::memory_order_relaxed);
}

void Stop::want() {
    wake_up(wake);
}

void Stop::end_by_signal(std::uint64_t records, const std::string& way) const {
    if (came == 0) return;
    report("ended by a signal after " + std::to_string(records) + " records" + way);
    io::end_by_signal(came);
}

int Stop::file() const {
    return wake[0];
}

int Stop::signal_file() const {
    return signalled[0];
}

}  // namespace attn::cli
