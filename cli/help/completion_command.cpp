// `attn completion SHELL`.
#include <string>
#include <vector>

#include "cli/help/completion.hpp"
#include "cli/help/help_command.hpp"
#include "core/base/error.hpp"
#include "io/file/output_file.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

std::vector<std::string_view> shell_names(const Program&) {
    std::vector<std::string_view> names;
    for (const auto& [name, script] : shells) names.push_back(name);
    return names;
}

int run_completion(const Args& args) {
    const std::vector<std::string>& words = args.names();
    const std::string expected = "expected " + listed(shell_names(*args.program));
    if (words.empty())
        throw Error(ErrorKind::usage, "attn completion", "no name of a shell; " + expected);
    if (words.size() > 1)
        throw Error(ErrorKind::usage, io::shortened(words[1]), "a second shell; expected one");
    for (const auto& [name, script] : shells) {
        if (name != words[0]) continue;
        io::show(script(*args.program));
        return 0;
    }
    throw Error(ErrorKind::usage, "attn completion " + io::shortened(words[0]),
                "no such shell; " + expected);
}

}  // namespace

constexpr CommandRow completion_command{
    .name = "completion",
    .summary = "a script that completes commands, flags and names in your shell",
    .examples =
        "  source <(attn completion bash)\n"
        "  attn completion zsh > ~/.zfunc/_attn\n"
        "  attn completion fish > ~/.config/fish/completions/attn.fish\n",
    .usage = "SHELL\n\nSHELL is bash, zsh or fish.",
    .names = shell_names,
    .run = run_completion};

}  // namespace attn::cli
