#include "tests/support/run_attn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

extern char** environ;

namespace attn::test {
namespace {

/// A pseudo-terminal: what a program writes to `program` is read from `screen`.
struct Pty {
    int screen = ::posix_openpt(O_RDWR | O_NOCTTY);
    int program = -1;

    explicit Pty(const Terminal& terminal) {
        const bool is_ready = screen >= 0 && ::grantpt(screen) == 0 && ::unlockpt(screen) == 0;
        if (is_ready) program = ::open(::ptsname(screen), O_RDWR | O_NOCTTY);
        termios settings{};
        if (program < 0 || ::tcgetattr(program, &settings) != 0)
            throw std::runtime_error("no pseudo-terminal");
        settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // '\n' stays as it is
        ::tcsetattr(program, TCSANOW, &settings);
        winsize size{};
        size.ws_col = terminal.columns;
        size.ws_row = terminal.rows;
        ::ioctl(program, TIOCSWINSZ, &size);
        for (int file : {screen, program}) ::fcntl(file, F_SETFD, FD_CLOEXEC);
    }
    Pty(const Pty&) = delete;
    Pty& operator=(const Pty&) = delete;
    ~Pty() {
        ::close(screen);
        ::close(program);
    }

    /// What is shown until no program has it open any more.
    std::string read_all() {
        ::close(std::exchange(program, -1));
        std::string text;
        std::array<char, 1 << 16> piece{};
        for (ssize_t count; (count = ::read(screen, piece.data(), piece.size())) > 0;)
            text.append(piece.data(), static_cast<std::size_t>(count));
        return text;
    }
};

Words environment_without(const std::string& name) {
    Words kept;
    for (char** entry = environ; *entry != nullptr; ++entry)
        if (!std::string(*entry).starts_with(name + "=")) kept.emplace_back(*entry);
    return kept;
}

std::vector<char*> pointers_to(Words& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Files, not pipes: nothing can block, however much is written.
Outcome run(Words words, const std::string& input, const std::string& out_path,
            const Terminal& terminal = {.in = false, .out = false}) {
    const std::string folder = scratch_folder();
    const std::string in = folder + "/.stdin", out = folder + "/.stdout", err = folder + "/.stderr";
    write_text(in, input);
    const std::string& target = out_path.empty() ? out : out_path;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, target.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::optional<Pty> pty;
    if (terminal.in || terminal.out || terminal.err) pty.emplace(terminal);
    for (const auto& [file, on_terminal] :
         {std::pair(0, terminal.in), {1, terminal.out}, {2, terminal.err}})
        if (on_terminal) posix_spawn_file_actions_adddup2(&actions, pty->program, file);
    Words environment = environment_without(pty ? "COLUMNS" : "");
    // Looking for leaks at the end takes as long as most runs do.
    static Sample sample;
    if (!sample.takes()) environment.emplace_back("ASAN_OPTIONS=detect_leaks=0");
    const std::vector<char*> argv = pointers_to(words), envp = pointers_to(environment);
    pid_t pid = 0;
    if (posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), envp.data()) != 0)
        throw std::runtime_error("cannot run " + words[0]);
    posix_spawn_file_actions_destroy(&actions);
    const std::string shown = pty ? pty->read_all() : "";
    int status = 0;
    waitpid(pid, &status, 0);
    Outcome outcome;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (terminal.out)
        outcome.out = shown;
    else if (out_path.empty())
        outcome.out = read_text(out);
    outcome.err = terminal.err && !terminal.out ? shown : read_text(err);
    return outcome;
}

Words words_of(const Words& arguments) {
    return Words{ATTN_PROGRAM} + arguments;
}

}  // namespace

Outcome run_attn(const Words& arguments, const std::string& input, const std::string& out_path) {
    return run(words_of(arguments), input, out_path);
}

Outcome run_on_terminal(const Words& arguments, const Terminal& terminal,
                        const std::string& input) {
    return run(words_of(arguments), input, "", terminal);
}

Outcome run_shell(const std::string& line) {
    const std::string folder = std::filesystem::path(ATTN_PROGRAM).parent_path();
    return run({"/bin/sh", "-c", "PATH='" + folder + "':$PATH; " + line}, "", "");
}

}  // namespace attn::test
