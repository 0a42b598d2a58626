// The wish to end early; see stop.hpp.
#include "cli/batch/stop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>

namespace attn::cli {
namespace {

constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};

// A handler reaches nothing but these, all of them safe in one.
std::atomic<bool> is_wanted{false};
std::atomic<int> came{0};
std::array<int, 2> wake{-1, -1};
static_assert(std::atomic<int>::is_always_lock_free);

void wake_up() {
    is_wanted.store(true);
    const char byte = 0;
    // A full pipe wakes as well.
    [[maybe_unused]] const ssize_t written = ::write(wake[1], &byte, 1);
}

void take_note(int signal) {
    came.store(signal);
    wake_up();
}

}  // namespace

Stop::Stop() {
    is_wanted = false;
    came = 0;
    if (::pipe(wake.data()) == 0)
        for (int file : wake) {
            ::fcntl(file, F_SETFD, FD_CLOEXEC);
            ::fcntl(file, F_SETFL, O_NONBLOCK);
        }
    for (int signal : signals) {
        struct sigaction before {};
        ::sigaction(signal, nullptr, &before);
        if (before.sa_handler == SIG_IGN) continue;  // as nohup and background jobs have it
        struct sigaction action {};
        action.sa_handler = take_note;
        action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one is not waited for
        sigemptyset(&action.sa_mask);
        ::sigaction(signal, &action, nullptr);
    }
}

Stop::~Stop() {
    for (int signal : signals) {
        struct sigaction now {};
        ::sigaction(signal, nullptr, &now);
        if (now.sa_handler == take_note) std::signal(signal, SIG_DFL);
    }
    for (int& file : wake) {
        ::close(file);
        file = -1;
    }
}

bool Stop::wanted() const {
    return is_wanted.load(std::memory_order_relaxed);
}

void Stop::want() {
    wake_up();
}

int Stop::signal() const {
    return came.load();
}

int Stop::file() const {
    return wake[0];
}

void Stop::end_by(int signal) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    std::_Exit(128 + signal);
}

}  // namespace attn::cli
