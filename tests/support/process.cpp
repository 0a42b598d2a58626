#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

extern char** environ;

namespace attn::test {
namespace {

using namespace std::chrono_literals;

constexpr auto hangs = 60s;
constexpr auto pause = 200us;

std::array<int, 2> pipe_for_one_child() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    for (int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    return ends;
}

void close_once(int& file) {
    if (file >= 0) ::close(std::exchange(file, -1));
}

/// Tries until `is_done`.
template <class IsDone>
void wait_until(IsDone is_done) {
    const auto end = std::chrono::steady_clock::now() + hangs;
    while (!is_done()) {
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error("attn hangs");
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace

Process::Process(const Words& arguments, bool input_waits) {
    static int started = 0;
    err_path_ = scratch_folder() + "/.stderr" + std::to_string(++started);
    std::signal(SIGPIPE, SIG_IGN);  // a program that ends early must not end the test
    const auto [child_in, in] = pipe_for_one_child();
    const auto [out, child_out] = pipe_for_one_child();
    if (!input_waits) ::fcntl(child_in, F_SETFL, O_NONBLOCK);
    in_ = in;
    out_ = out;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child_out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_path_.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    // Tests that run in the background of a shell are started with SIGINT ignored.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&defaults, signal);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

    Words words = Words{ATTN_PROGRAM} + arguments;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error = posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    ::close(child_in);
    ::close(child_out);
    if (error != 0) throw std::runtime_error("cannot run " + words[0]);
}

Process::~Process() {
    if (!ending_) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    close_input();
    close_output();
}

void Process::write(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t count = ::write(in_, text.data() + done, text.size() - done);
        if (count < 0) return;
        done += static_cast<std::size_t>(count);
    }
}

void Process::close_input() {
    close_once(in_);
}

std::optional<std::string> Process::read_line() {
    std::size_t end;
    while ((end = buffer_.find('\n')) == std::string::npos) {
        pollfd file{out_, POLLIN, 0};
        if (::poll(&file, 1, static_cast<int>(std::chrono::milliseconds(hangs).count())) == 0)
            throw std::runtime_error("attn gives no answer");
        std::array<char, 1 << 16> piece{};
        const ssize_t count = ::read(out_, piece.data(), piece.size());
        if (count <= 0) break;
        buffer_.append(piece.data(), static_cast<std::size_t>(count));
    }
    if (buffer_.empty()) return {};
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end == std::string::npos ? end : end + 1);
    return line;
}

void Process::close_output() {
    close_once(out_);
}

void Process::send(int signal) const {
    ::kill(pid_, signal);
}

bool Process::has_ended() {
    if (ending_) return true;
    int status = 0;
    rusage usage{};
    if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return false;
    take_ending(status, usage.ru_maxrss);
    return true;
}

bool Process::wait_for_size(const std::string& path, std::size_t bytes) {
    const auto has_size = [&] {
        std::error_code error;
        const auto size = std::filesystem::file_size(path, error);
        return !error && size >= bytes;
    };
    wait_until([&] { return has_size() || has_ended(); });
    return has_size();
}

Ending Process::wait() {
    wait_until([&] { return has_ended(); });
    return *ending_;
}

void Process::take_ending(int status, long peak_kib) {
    ending_.emplace();
    ending_->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ending_->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ending_->err = read_text(err_path_);
    ending_->peak_kib = peak_kib;
}

}  // namespace attn::test
