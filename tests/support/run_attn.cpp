#include "tests/support/run_attn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "tests/support/support.hpp"

extern char** environ;

namespace attn::test {
namespace {

// Files, not pipes: nothing can block, however much is written.
Outcome run(std::vector<std::string> words, const std::string& input, const std::string& out_path) {
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
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    if (posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ) != 0)
        throw std::runtime_error("cannot run " + words[0]);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    waitpid(pid, &status, 0);
    Outcome outcome;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (out_path.empty()) outcome.out = read_text(out);
    outcome.err = read_text(err);
    return outcome;
}

}  // namespace

Outcome run_attn(const std::vector<std::string>& arguments, const std::string& input,
                 const std::string& out_path) {
    std::vector<std::string> words{ATTN_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run(words, input, out_path);
}

Outcome run_shell(const std::string& line) {
    const std::string folder = std::filesystem::path(ATTN_PROGRAM).parent_path();
    return run({"/bin/sh", "-c", "PATH='" + folder + "':$PATH; " + line}, "", "");
}

}  // namespace attn::test
