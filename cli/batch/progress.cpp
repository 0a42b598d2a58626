// What runs of many records show and react to: their progress, and a stop by signals. Debian has no
// C++ library for progress lines.
#include "cli/batch/records.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "io/file/temporary.hpp"

namespace attn::cli {
namespace {

/// 1234567 as "1,234,567".
std::string grouped(double number) {
    std::string text = std::to_string(std::llround(number));
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text;
}

/// "0:01:05".
std::string clock_text(double seconds) {
    const auto whole = std::llround(seconds);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
    return text.data();
}

}  // namespace

std::string progress_text(std::uint64_t records, double seconds, std::optional<double> part,
                          std::size_t columns) {
    const double rate = seconds > 0 ? static_cast<double>(records) / seconds : 0;
    std::string text = grouped(static_cast<double>(records)) + " records  " + grouped(rate) + "/s";
    if (!part) return text.substr(0, columns);
    std::array<char, 16> percent{};
    std::snprintf(percent.data(), percent.size(), "%3.0f %%  ", 100 * *part);
    text.insert(0, percent.data());
    constexpr double longest = 1e6;  // seconds; early estimates may be far off
    const double left = *part > 0 ? seconds * (1 - *part) / *part : longest;
    if (left < longest) text += "  " + clock_text(left) + " left";
    constexpr std::size_t narrowest = 10, frame = 4;  // brackets and blanks
    if (text.size() + narrowest + frame > columns) return text.substr(0, columns);
    const std::size_t width = std::min<std::size_t>(columns - text.size() - frame, 40);
    const auto filled = static_cast<std::size_t>(*part * static_cast<double>(width));
    return io::progress_bar(filled, width) + " " + text;
}

void Progress::show(std::uint64_t records) {
    line_.show([&] {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
        const double known = part_;
        const std::optional<double> part = known == unknown ? std::nullopt : std::optional(known);
        return progress_text(records, passed.count(), part, io::screen_columns(STDERR_FILENO) - 1);
    });
}

void report(const std::string& text) {
    std::fprintf(stderr, "attn: %s\n", io::one_line(text).c_str());
}

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
