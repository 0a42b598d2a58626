// `attn completion SHELL`, and `attn completion --words LINE` for its script.
#include <string>
#include <vector>

#include "cli/args/args.hpp"
#include "cli/help/help.hpp"
#include "core/base/error.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

/// One script per shell, which asks the program with `attn completion --words LINE`.
struct Shell {
    std::string_view name, script;
};
constexpr Shell shells[] = {{"bash", R"(# bash completion for attn, 3.2 or later
_attn() {
    local cur=${COMP_WORDS[COMP_CWORD]} kind word _
    # bash separates --flag=value at the sign.
    [[ $cur != = ]] || cur=
    COMPREPLY=()
    {
        read -r kind
        while IFS=$'\t' read -r word _; do
            word=${word#--*=}
            [[ $word != "$cur"* ]] || COMPREPLY+=("$word")
        done
    } < <("$1" completion --words "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $kind in
    list) compopt -o nospace 2>/dev/null ;;
    files)
        local IFS=$'\n'
        COMPREPLY=($(compgen -f -- "$cur"))
        compopt -o filenames 2>/dev/null ;;
    esac
}
complete -F _attn attn
)"},
                            {"zsh", R"(#compdef attn
_attn() {
    local before=${(M)PREFIX##*[=,]} line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    local -a found suffix
    found=("${(@f)$($words[1] completion --words $line 2>/dev/null)}")
    if [[ $found[1] == files ]]; then
        compset -P '--*='
        _files
        return
    fi
    [[ $found[1] != list ]] || suffix=(-S '')
    # Words without what precedes the last = or comma, each with its help after a colon.
    found=("${(@)${(@)found[2,-1]#$before}/$'\t'/:}")
    compset -P '*[=,]'
    _describe attn found $suffix
}

if [ "$funcstack[1]" = _attn ]; then
    _attn "$@"
else
    compdef _attn attn
fi
)"},
                            {"fish", R"(# fish completion for attn, 3.0 or later
function __attn_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l found ($words[1] completion --words "$words $last" 2>/dev/null)
    if test "$found[1]" = files
        set -l flag (string match -r -- '^--[a-z-]+=' "$last")
        for path in (__fish_complete_path (string replace -- "$flag" '' "$last"))
            echo "$flag$path"
        end
    else
        string join \n -- $found[2..-1]
    end
end
complete -c attn -f -a '(__attn_complete)'
)"}};

std::vector<std::string_view> shell_names(const Program&) {
    std::vector<std::string_view> names;
    for (const Shell& shell : shells) names.push_back(shell.name);
    return names;
}

int run_completion(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (const auto line = args.text("words")) {
        if (!words.empty())
            throw Error(
                ErrorKind::usage, "--words",
                "conflicts with SHELL '" + io::shortened(words[0]) + "'; expected one of them");
        const Completion found = completion_of(*args.program, *line);
        std::string text(found.kind);
        for (const auto& [word, help] : found.words)
            text += '\n' + word + (help.empty() ? "" : '\t' + help);
        io::show(text + '\n');
        return 0;
    }
    const std::string expected = "expected " + listed(shell_names(*args.program));
    if (words.empty())
        throw Error(ErrorKind::usage, "attn completion", "no name of a shell; " + expected);
    if (words.size() > 1)
        throw Error(ErrorKind::usage, io::shortened(words[1]), "a second shell; expected one");
    for (const Shell& shell : shells)
        if (shell.name == words[0]) return io::show(std::string(shell.script)), 0;
    throw Error(ErrorKind::usage, "attn completion " + io::shortened(words[0]),
                "no such shell; " + expected);
}

constexpr Option completion_options[] = {
    {.key = "words",
     .argument = "LINE",
     .help = "for the scripts: words, list or files, then the words that may end the line"}};

}  // namespace

constexpr CommandRow completion_command{
    .name = "completion",
    .summary = "a script that completes commands, flags and names in your shell",
    .examples =
        "  source <(attn completion bash)\n"
        "  attn completion zsh > ~/.zfunc/_attn\n"
        "  attn completion fish > ~/.config/fish/completions/attn.fish\n",
    .usage = "SHELL\n\nSHELL is bash, zsh or fish.",
    .own = completion_options,
    .names = shell_names,
    .run = run_completion};

}  // namespace attn::cli
